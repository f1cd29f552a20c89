// Score a row of features with a model that `corank export --to json` wrote; for Node.js and browsers, no dependencies.
// score(model, x): x is an array in the order of model.features, or an object of values by feature name.
const sum = (n, term) => { let s = 0; for (let i = 0; i < n; i++) s += term(i); return s; };

const kernels = {
  gaussian: (m, u, z) => Math.exp(-m.gamma * sum(u.length, (j) => (u[j] - z[j]) ** 2)),
  laplacian: (m, u, z) => Math.exp(-m.gamma * sum(u.length, (j) => Math.abs(u[j] - z[j]))),
  "chi-square": (m, u, z) =>
    Math.exp(-m.gamma * sum(u.length, (j) => (u[j] + z[j] > 0 ? (u[j] - z[j]) ** 2 / (u[j] + z[j]) : 0))),
  polynomial: (m, u, z) => (m.gamma * sum(u.length, (j) => u[j] * z[j]) + m.coef0) ** m.degree,
  cosine: (m, u, z) => sum(u.length, (j) => u[j] * z[j]) / (Math.hypot(...u) * Math.hypot(...z)) || 0,
};

function leaf(tree, x) {
  let k = tree.features.length ? 0 : -1;
  while (k >= 0) {
    const v = x[tree.features[k]], flags = tree.missing[k];
    const missing = Number.isNaN(v) || (flags & 2 && Math.abs(v) <= 1.0000000180025095e-35);
    k = (missing ? flags & 1 : v <= tree.thresholds[k]) ? tree.left[k] : tree.right[k];
  }
  return tree.values[-k - 1];
}

function interpolate(s, xs, ys) {
  let k = 0;
  while (k < xs.length && xs[k] <= s) k++;
  if (k === 0) return ys[0];
  return k === xs.length ? ys[k - 1] : ys[k - 1] + ((ys[k] - ys[k - 1]) * (s - xs[k - 1])) / (xs[k] - xs[k - 1]);
}

const kinds = {
  linear: (m, x) => sum(x.length, (j) => m.weights[j] * x[j]) + m.intercept,
  trees: (m, x) => sum(m.trees.length, (t) => leaf(m.trees[t], x)) + m.intercept,
  perceptron: (m, x) => {
    let out = x.map((v, j) => v * m.scale[j] + m.shift[j]).map((u) => Math.sign(u) * Math.log1p(Math.abs(u)));
    m.layers.forEach((layer, at) => {
      const sums = layer.bias.map((b, i) => sum(out.length, (j) => layer.weights[i][j] * out[j]) + b);
      out = at === m.layers.length - 1 ? sums : sums.map(Math.tanh);
    });
    return out[0];
  },
  kernel: (m, x) => {
    const u = m.columns.map((column, j) => x[column] * m.scale[j] + m.shift[j]);
    return sum(m.rows.length, (t) => m.coefficients[t] * kernels[m.kernel](m, u, m.rows[t])) + m.intercept;
  },
  sum: (m, x) => sum(m.parts.length, (i) => m.parts[i].weight * part(m.parts[i].scorer, x)) + m.intercept,
  calibrated: (m, x) => {
    const s = part(m.scorer, x);
    return m.knots ? interpolate(s, m.knots, m.levels) : m.low + (m.high - m.low) / (1 + Math.exp(-m.slope * s - m.offset));
  },
};
const part = (m, x) => kinds[m.type](m, x);

function score(model, x) {
  const row = Array.isArray(x) ? x : model.features.map((name) => (x[name] === undefined ? NaN : x[name]));
  return part(model.scorer, row) + model.shift;
}
if (typeof module !== "undefined") module.exports = { score };
