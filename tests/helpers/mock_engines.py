"""
A server with the REST endpoints of the engines, which accepts what their plugins accept.

Elasticsearch and OpenSearch: `PUT _ltr`, `PUT _ltr/_featureset/F`, `POST _ltr/_featureset/F/_createmodel`.
Solr: `PUT /solr/C/schema/feature-store` and `PUT /solr/C/schema/model-store`.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import isfinite

OBJECTIVES = {
    "rank:ndcg",
    "rank:map",
    "rank:pairwise",
    "reg:linear",
    "binary:logitraw",
    "binary:logistic",
    "reg:logistic",
}
SOLR = "org.apache.solr.ltr."
ACTIVATIONS = {"identity", "relu", "leakyrelu", "sigmoid", "tanh"}


class Refused(Exception):
    """The engine answers 400."""


def require(condition, message):
    if not condition:
        raise Refused(message)


class Engines:
    """State of the two kinds of engines: feature sets, feature stores and models."""

    def __init__(self):
        self.has_store = False
        self.featuresets, self.models = {}, {}
        self.stores, self.solr_models = {}, {}

    def handle(self, method, path, body):
        parts = path.strip("/").split("/")
        if parts == ["_ltr"]:
            require(method == "PUT", "method")
            self.has_store = True
        elif parts[:2] == ["_ltr", "_featureset"] and len(parts) == 3:
            require(method in ("PUT", "POST"), "method")
            self.add_featureset(parts[2], body)
        elif parts[:2] == ["_ltr", "_featureset"] and parts[3:] == ["_createmodel"]:
            require(method == "POST", "method")
            self.add_model(parts[2], body)
        elif parts[0] == "solr" and parts[2:] == ["schema", "feature-store"]:
            require(method == "PUT", "method")
            for feature in body:
                self.add_solr_feature(feature)
        elif parts[0] == "solr" and parts[2:] == ["schema", "model-store"]:
            require(method == "PUT", "method")
            self.add_solr_model(body)
        else:
            raise Refused(f"no endpoint {path}")

    def add_featureset(self, name, body):
        require(self.has_store, "no feature store: PUT _ltr")
        require(set(body) == {"featureset"}, "expected featureset")
        features = body["featureset"]["features"]
        for feature in features:
            require(set(feature) == {"name", "params", "template_language", "template"}, "fields of a feature")
            require(feature["template_language"] in ("mustache", "derived_expression", "script_feature"), "language")
            require(isinstance(feature["params"], list) and isinstance(feature["template"], dict | str), "template")
        names = [feature["name"] for feature in features]
        require(len(names) == len(set(names)), "feature twice")
        self.featuresets[name] = names

    def add_model(self, featureset, body):
        require(featureset in self.featuresets, "unknown feature set")
        known = set(self.featuresets[featureset])
        require(set(body) == {"model"} and set(body["model"]) == {"name", "model"}, "expected model")
        model = body["model"]["model"]
        require(set(model) <= {"type", "definition", "feature_normalizers"}, "fields of a model")
        require(isinstance(model["definition"], str), "the definition is a string")
        definition = json.loads(model["definition"])
        if model["type"] == "model/linear":
            require(all(isinstance(weight, float | int) for weight in definition.values()), "weights")
            require(set(definition) <= known, f"unknown features {set(definition) - known}")
        else:
            require(model["type"] == "model/xgboost+json", "type")
            require(set(definition) <= {"objective", "splits", "missing_as_zero"}, "fields of a definition")
            require(definition["objective"] in OBJECTIVES, "objective")
            for tree in definition["splits"]:
                self.check_node(tree, known)
        for feature, norm in model.get("feature_normalizers", {}).items():
            require(feature in known, "unknown feature of a normaliser")
            ((kind, numbers),) = norm.items()
            if kind == "standard":
                require(set(numbers) == {"mean", "standard_deviation"} and numbers["standard_deviation"] > 0, kind)
            else:
                require(kind == "min_max" and set(numbers) == {"minimum", "maximum"}, kind)
                require(numbers["minimum"] < numbers["maximum"], kind)
        self.models[body["model"]["name"]] = body

    def check_node(self, node, known):
        if "leaf" in node:
            require(set(node) == {"nodeid", "leaf"} and isfinite(node["leaf"]), "leaf")
            return
        required = {"nodeid", "depth", "split", "split_condition", "yes", "no", "children"}
        require(required <= set(node) <= required | {"missing"}, "split")
        require(node["split"] in known, f"unknown feature {node['split']}")
        require([child["nodeid"] for child in node["children"]] == [node["yes"], node["no"]], "children")
        require(node.get("missing", node["no"]) in (node["yes"], node["no"]), "missing")
        for child in node["children"]:
            self.check_node(child, known)

    def add_solr_feature(self, feature):
        require(set(feature) == {"store", "name", "class", "params"}, "fields of a feature")
        kind = feature["class"].removeprefix(f"{SOLR}feature.")
        keys = {"SolrFeature": {"q"}, "ValueFeature": {"value"}, "FieldValueFeature": {"field"}}
        require(kind in keys and set(feature["params"]) == keys[kind], "class of a feature")
        store = self.stores.setdefault(feature["store"], [])
        require(feature["name"] not in store, "feature twice")
        store.append(feature["name"])

    def add_solr_model(self, body):
        require(set(body) == {"class", "name", "store", "features", "params"}, "fields of a model")
        require(body["store"] in self.stores, "unknown store")
        names = [feature["name"] for feature in body["features"]]
        require(set(names) <= set(self.stores[body["store"]]), "unknown features")
        for feature in body["features"]:
            require(set(feature) <= {"name", "norm"}, "fields of a feature")
            if "norm" in feature:
                self.check_norm(feature["norm"])
        kind, params = body["class"].removeprefix(f"{SOLR}model."), body["params"]
        if kind == "LinearModel":
            require(set(names) <= set(params["weights"]), "a feature without weight")
        elif kind == "MultipleAdditiveTreesModel":
            require(params["trees"], "no trees")
            for tree in params["trees"]:
                require(set(tree) == {"weight", "root"}, "tree")
                float(tree["weight"])
                self.check_solr_node(tree["root"], names)
        else:
            require(kind == "NeuralNetworkModel", "class")
            width = len(names)
            for layer in params["layers"]:
                require(all(len(unit) == width for unit in layer["matrix"]), "width of a layer")
                require(len(layer["bias"]) == len(layer["matrix"]), "bias")
                require(layer["activation"] in ACTIVATIONS, "activation")
                width = len(layer["matrix"])
            require(width == 1, "the last layer has one unit")
        self.solr_models[body["name"]] = body

    def check_norm(self, norm):
        kind = norm["class"].removeprefix(f"{SOLR}norm.")
        keys = {"StandardNormalizer": {"avg", "std"}, "MinMaxNormalizer": {"min", "max"}}
        require(set(norm["params"]) == keys[kind], "params of a normaliser")
        require(all(isinstance(value, str) for value in norm["params"].values()), "numbers are strings")
        if kind == "StandardNormalizer":
            require(float(norm["params"]["std"]) > 0.0, "std")

    def check_solr_node(self, node, names):
        if "value" in node:
            require(set(node) == {"value"} and isfinite(float(node["value"])), "leaf")
            return
        require(set(node) == {"feature", "threshold", "left", "right"}, "node")
        require(node["feature"] in names and isfinite(float(node["threshold"])), "feature")
        self.check_solr_node(node["left"], names)
        self.check_solr_node(node["right"], names)


@contextmanager
def serving():
    """Serve the endpoints on a free port; yields the engines and the address."""
    engines = Engines()

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            length = int(self.headers.get("Content-Length") or 0)
            text = self.rfile.read(length)
            try:
                if text:
                    require(self.headers.get("Content-Type") == "application/json", "406: Content-Type")
                engines.handle(self.command, self.path, json.loads(text) if text else None)
                code, reply = 200, {"acknowledged": True}
            except (Refused, KeyError, TypeError, ValueError) as error:
                code, reply = 400, {"error": repr(error)}
            content = json.dumps(reply).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_PUT = do_POST = answer

        def log_message(self, *words):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield engines, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
