from corank.comparison.advice import quality as quality
from corank.comparison.card import model_card as model_card
from corank.comparison.card import query_importance as query_importance
from corank.comparison.charts import Axis as Axis
from corank.comparison.charts import Curve as Curve
from corank.comparison.charts import line_chart as line_chart
from corank.comparison.methods import METHODS as METHODS
from corank.comparison.outcomes import CurvePoint as CurvePoint
from corank.comparison.outcomes import DataSummary as DataSummary
from corank.comparison.outcomes import MethodOutcome as MethodOutcome
from corank.comparison.outcomes import Rival as Rival
from corank.comparison.outcomes import Study as Study
from corank.comparison.outcomes import study_html as study_html
from corank.comparison.outcomes import write as write
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
from corank.tables import Cell as Cell

__all__: list[str]
