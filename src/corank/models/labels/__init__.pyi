from corank.models.labels.auto import AutoLabelRanker as AutoLabelRanker
from corank.models.labels.batch import expand_constraints as expand_constraints
from corank.models.labels.calibrated import CalibratedLabelRanker as CalibratedLabelRanker
from corank.models.labels.measures import average_precision as average_precision
from corank.models.labels.measures import coverage as coverage
from corank.models.labels.measures import f1 as f1
from corank.models.labels.measures import footrule_distance as footrule_distance
from corank.models.labels.measures import hamming_loss as hamming_loss
from corank.models.labels.measures import kendall_distance as kendall_distance
from corank.models.labels.measures import kendall_tau as kendall_tau
from corank.models.labels.measures import one_error as one_error
from corank.models.labels.measures import ranking_loss as ranking_loss
from corank.models.labels.measures import spearman_rho as spearman_rho
from corank.models.labels.measures import subset_loss as subset_loss
from corank.models.labels.measures import top_positions as top_positions
from corank.models.labels.neighbors import NeighborLabelRanker as NeighborLabelRanker
from corank.models.labels.online import OnlineLabelRanker as OnlineLabelRanker
from corank.models.labels.pairwise import PairwiseLabelRanker as PairwiseLabelRanker
from corank.models.labels.preferences import LabelPreferences as LabelPreferences
from corank.models.labels.ranker import LabelRanker as LabelRanker

__all__: list[str]
