"""Holds metric documents to the JSON schema of CloudWatch's embedded metric format.

AWS has published the schema in its documentation, and in Powertools for AWS Lambda (Python) up to
version 1.10.0, from where it is taken here.

Usage: check_emf.py SCHEMA DOCUMENTS

DOCUMENTS has a document in each line. Exits 1 and says why if one does not fit, if there is none, or
if the schema lets a broken one pass.
"""

import copy
import json
import sys

from jsonschema import Draft7Validator


def broken(document):
    """The document, broken in ways that the schema speaks of."""
    metadata = document["_aws"]
    directive = metadata["CloudWatchMetrics"][0]
    yield from (
        {**document, "_aws": {**metadata, "Timestamp": "now"}},
        {**document, "_aws": {"CloudWatchMetrics": metadata["CloudWatchMetrics"]}},
    )
    for change in (
        {"Namespace": ""},
        {"Dimensions": []},
        {"Metrics": []},
        {"Metrics": [{"Name": "New", "Unit": "ms"}]},
    ):
        other = copy.deepcopy(document)
        other["_aws"]["CloudWatchMetrics"][0] = {**directive, **change}
        yield other


def main(schema, documents):
    with open(schema, encoding="utf-8") as file:
        validator = Draft7Validator(json.load(file))
    with open(documents, encoding="utf-8") as file:
        all_documents = [json.loads(line) for line in file]
    if not all_documents:
        sys.exit("there is no document")
    for number, document in enumerate(all_documents, 1):
        for error in validator.iter_errors(document):
            sys.exit(f"document {number} at {'/'.join(map(str, error.path))}: {error.message}")
    for bad in broken(all_documents[0]):
        if validator.is_valid(bad):
            sys.exit(f"the schema lets this pass: {json.dumps(bad)}")
    metrics = {m["Name"] for d in all_documents for w in d["_aws"]["CloudWatchMetrics"] for m in w["Metrics"]}
    print(f"{len(all_documents)} documents with {len(metrics)} metrics fit")


if __name__ == "__main__":
    main(*sys.argv[1:])
