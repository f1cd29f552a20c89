from corank.comparison.methods import METHODS as METHODS
from corank.comparison.report.blocks import Report as Report
from corank.comparison.report.card import ModelCard as ModelCard
from corank.comparison.report.card import model_card as model_card
from corank.comparison.report.card import query_importance as query_importance
from corank.comparison.report.page import CONTENT_POLICY as CONTENT_POLICY
from corank.comparison.report.page import page as page
from corank.comparison.report.page import section as section
from corank.comparison.report.study import study_html as study_html
from corank.comparison.report.study import study_markdown as study_markdown
from corank.comparison.report.study import write as write
from corank.comparison.study import compare as compare
from corank.comparison.values import Coefficient as Coefficient
from corank.comparison.values import CurvePoint as CurvePoint
from corank.comparison.values import DataSummary as DataSummary
from corank.comparison.values import MethodOutcome as MethodOutcome
from corank.comparison.values import PathPoint as PathPoint
from corank.comparison.values import QueryValue as QueryValue
from corank.comparison.values import ReliabilityPoint as ReliabilityPoint
from corank.comparison.values import Rival as Rival
from corank.comparison.values import Study as Study
from corank.comparison.values import TradeOffPoint as TradeOffPoint
from corank.comparison.winner import quality as quality
from corank.tables import Cell as Cell

__all__: list[str]
