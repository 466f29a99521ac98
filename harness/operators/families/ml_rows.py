"""Classic machine learning: the domain ``ai.onnx.ml``."""

from harness.operators.row import ML, BookRow, plain
from harness.operators.value_domains import index_into

# fmt: off
ROWS = (
    BookRow("ArrayFeatureExtractor", domains=(ML,), exact=True, values={1: index_into(0, -1)}),
    BookRow("Binarizer", domains=(ML,), exact=True, jumps=True),
    BookRow("CastMap", domains=(ML,), exact=True),
    BookRow("CategoryMapper", domains=(ML,), exact=True),
    BookRow("DictVectorizer", domains=(ML,), exact=True),
    BookRow("FeatureVectorizer", domains=(ML,), exact=True),
    BookRow("Imputer", domains=(ML,), exact=True),
    BookRow("LabelEncoder", domains=(ML,), exact=True, jumps=True),
    BookRow("LinearClassifier", domains=(ML,), jumps=True, layer="classifier", head="softmax"),
    BookRow("LinearRegressor", domains=(ML,), layer="attributes"),
    BookRow("OneHotEncoder", domains=(ML,), exact=True, jumps=True),
    BookRow("SVMClassifier", domains=(ML,), jumps=True, layer="classifier", head="softmax"),
    BookRow("SVMRegressor", domains=(ML,), layer="attributes"),
    BookRow("TreeEnsemble", domains=(ML,), jumps=True, fit="trees", layer="attributes"),
    BookRow("TreeEnsembleClassifier", domains=(ML,), jumps=True, fit="trees", layer="classifier",
        head="softmax"),
    BookRow("TreeEnsembleRegressor", domains=(ML,), jumps=True, fit="trees", layer="attributes"),
    BookRow("ZipMap", domains=(ML,), exact=True),
    *plain("Normalizer Scaler", domains=(ML,)),
)
# fmt: on
