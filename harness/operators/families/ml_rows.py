"""Classic machine learning: the domain ``ai.onnx.ml``."""

from harness.operators.row import ML, BookRow, plain
from harness.operators.value_domains import index_into

# fmt: off
ROWS = (
    BookRow("ArrayFeatureExtractor", domains=(ML,), exact=True, values={1: index_into(0, -1)},
        columns="selects"),
    BookRow("Binarizer", domains=(ML,), exact=True, jumps=True),
    BookRow("CastMap", domains=(ML,), exact=True),
    BookRow("CategoryMapper", domains=(ML,), exact=True, columns="keys"),
    BookRow("DictVectorizer", domains=(ML,), exact=True),
    BookRow("FeatureVectorizer", domains=(ML,), exact=True, columns="joins"),
    BookRow("Imputer", domains=(ML,), exact=True, columns="imputes"),
    BookRow("LabelEncoder", domains=(ML,), exact=True, jumps=True, columns="keys"),
    BookRow("LinearClassifier", domains=(ML,), jumps=True, layer="classifier", head="softmax"),
    BookRow("LinearRegressor", domains=(ML,), layer="attributes"),
    BookRow("OneHotEncoder", domains=(ML,), exact=True, jumps=True, columns="categories"),
    BookRow("SVMClassifier", domains=(ML,), jumps=True, columns="support_vectors", layer="classifier",
        head="softmax"),
    BookRow("SVMRegressor", domains=(ML,), columns="support_vectors", layer="attributes"),
    BookRow("TreeEnsemble", domains=(ML,), jumps=True, columns="trees", fit="trees", layer="attributes"),
    BookRow("TreeEnsembleClassifier", domains=(ML,), jumps=True, fit="trees", layer="classifier",
        head="softmax", columns="trees"),
    BookRow("TreeEnsembleRegressor", domains=(ML,), jumps=True, fit="trees", layer="attributes",
        columns="trees"),
    BookRow("ZipMap", domains=(ML,), exact=True),
    BookRow("Scaler", domains=(ML,), columns="scaler"),
    *plain("Normalizer", domains=(ML,)),
)
# fmt: on
