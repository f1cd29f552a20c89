from corank.models.labels.auto import AutoLabelRanker as AutoLabelRanker
from corank.models.labels.batch import expand_constraints as expand_constraints
from corank.models.labels.calibrated import CalibratedLabelRanker as CalibratedLabelRanker
from corank.models.labels.calibrated import PairwiseLabelRanker as PairwiseLabelRanker
from corank.models.labels.online import OnlineLabelRanker as OnlineLabelRanker
from corank.models.labels.preferences import LabelPreferences as LabelPreferences
from corank.models.labels.ranker import LabelRanker as LabelRanker
from corank.models.labels.ranker import average_precision as average_precision
from corank.models.labels.ranker import coverage as coverage
from corank.models.labels.ranker import f1 as f1
from corank.models.labels.ranker import footrule_distance as footrule_distance
from corank.models.labels.ranker import hamming_loss as hamming_loss
from corank.models.labels.ranker import kendall_distance as kendall_distance
from corank.models.labels.ranker import kendall_tau as kendall_tau
from corank.models.labels.ranker import one_error as one_error
from corank.models.labels.ranker import ranking_loss as ranking_loss
from corank.models.labels.ranker import spearman_rho as spearman_rho
from corank.models.labels.ranker import subset_loss as subset_loss
from corank.models.labels.ranker import top_positions as top_positions
from corank.models.labels.votes import ForestLabelRanker as ForestLabelRanker
from corank.models.labels.votes import NeighborLabelRanker as NeighborLabelRanker

__all__: list[str]
