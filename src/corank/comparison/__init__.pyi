from corank.comparison.card import model_card as model_card
from corank.comparison.card import query_importance as query_importance
from corank.comparison.charts import Axis as Axis
from corank.comparison.charts import Curve as Curve
from corank.comparison.charts import line_chart as line_chart
from corank.comparison.methods import METHODS as METHODS
from corank.comparison.report import CONTENT_POLICY as CONTENT_POLICY
from corank.comparison.report import STYLE as STYLE
from corank.comparison.report import Document as Document
from corank.comparison.report import PageBlock as PageBlock
from corank.comparison.report import Report as Report
from corank.comparison.report import code as code
from corank.comparison.report import collapsed as collapsed
from corank.comparison.report import paragraph as paragraph
from corank.comparison.report import part as part
from corank.comparison.study import compare as compare
from corank.comparison.study_report import study_html as study_html
from corank.comparison.study_report import study_markdown as study_markdown
from corank.comparison.study_report import write as write
from corank.comparison.values import CurvePoint as CurvePoint
from corank.comparison.values import DataSummary as DataSummary
from corank.comparison.values import MethodOutcome as MethodOutcome
from corank.comparison.values import Rival as Rival
from corank.comparison.values import Study as Study
from corank.comparison.winner import quality as quality
from corank.tables import Cell as Cell

__all__: list[str]
