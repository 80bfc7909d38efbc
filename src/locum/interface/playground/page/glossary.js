// Terms and their definitions, written by `python -m docs.site.playground_glossary` from docs/glossary.md.
"use strict";
Locum.glossary = {
  "s-op": "a sequence operator: a function that maps an input to one value per position. indices, tokens == \"a\" and aggregate(…) are s-ops. Call an s-op on an input to run it.",
  "selector": "an attention pattern: a boolean for each query and key, which is true if the query attends to the key. select(keys, queries, ==) returns a selector.",
  "query, key": "A query is a position that attends to other positions. A key is a position to which a query can attend. In figures, queries are rows and keys are columns.",
  "head": "an attention head: a selector, and the values that aggregate averages. Each query receives the mean of the values at its selected keys. The architecture of a program contains one head for length, two heads for selector_width, and one head for equal selectors in a layer.",
  "default": "the result of aggregate for a query that selects no key: 0, unless another value is given",
  "U": "the universal simulator: one program that receives ⟨T, X⟩ as tokens and returns T(X), for every T of its order",
  "T, X": "T is the simulated layer: attention, an encoder layer or a decoder layer. X is the input of T, with one row per token.",
  "⟨T, X⟩": "the entries of X, followed by the entries of the matrices of T, as one sequence of numbers. The memory of a decoder layer follows X.",
  "order": "the sizes (n, d, d_v, …) and the kind of layer for which U is built. U simulates every T of its order. In the lemma on inversion, the order of a square matrix is its number of rows.",
  "recipe": "one of several programs for the same function (\"paper\", \"fetch\", \"tiled\", …). Recipes can have different numbers of heads and layers.",
  "compile": "to convert a program to the weights of a transformer",
  "slot": "a direction of the residual stream that contains the value of one s-op at a time. d_model is the number of slots.",
  "sink": "an extra first token of some compiled transformers. A query that selects no key attends to the sink. In a causal transformer, the sink is the begin marker.",
  "MLP": "a feed-forward of hidden units with the activation ReLU (\"relu\") or GELU (\"gelu\"), or with gated units (\"glu\")",
  "hard, softmax": "two kinds of attention heads. A hard head computes the mean over the keys with the largest score. A softmax head weights the keys by exponentials of the scores.",
  "error bound": "a certified bound on the difference between the outputs of a network and of its program. The bound is infinite if no finite bound is known.",
  "claim": "a statement about all inputs of a given shape: the program computes a given formula",
  "proven": "shown for all inputs of a shape by running the program on symbols. A separate checker has accepted the certificate of the proof."
};
