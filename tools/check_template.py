"""Expands a SAM template as a deployment would, and checks what only then can be seen.

`sam validate --lint` and cfn-lint read the template as it is written; what SAM would make of it,
and whether SAM would refuse it, they do not find out. This does, by SAM's own transform.

Usage: check_template.py TEMPLATE EXPANDED

Writes the expanded template, as JSON, to EXPANDED. Exits 1 and says why if SAM refuses the
template, if a role may touch more than the resources that it names, or if a route has no
authorizer.
"""

import json
import os
import sys

from samcli.yamlhelper import yaml_parse
from samtranslator.model.exceptions import InvalidDocumentException
from samtranslator.translator.transform import transform

# Any values that the parameters' own patterns allow; parameters with a default keep it.
PARAMETERS = {"JwtIssuer": "https://issuer.example.com", "JwtAudience": "payments"}


class NoManagedPolicies:
    """Stands in for the list of AWS managed policies, which SAM would ask IAM for."""

    def load(self):
        return {}


def expand(path):
    with open(path, encoding="utf-8") as file:
        template = yaml_parse(file.read())
    # At deployment CodeUri is where the built code was uploaded, and SAM accepts nothing else.
    for section in (template.get("Globals", {}).get("Function", {}), *functions(template)):
        if "CodeUri" in section:
            section["CodeUri"] = "s3://bucket/key"
    # SAM wants a region for its partition (aws, aws-cn, ...). Nothing is sent there.
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
    return transform(template, PARAMETERS, NoManagedPolicies())


def functions(template):
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::Serverless::Function":
            yield resource["Properties"]


def as_list(value):
    return value if isinstance(value, list) else [value]


def grants_beyond_named_resources(template):
    """S1: least privilege, nothing on *."""
    for name, resource in template["Resources"].items():
        if resource["Type"] != "AWS::IAM::Role":
            continue
        for arn in resource["Properties"].get("ManagedPolicyArns", []):
            yield f"{name}: managed policy {arn}: write out what the function needs instead"
        for policy in resource["Properties"].get("Policies", []):
            for statement in as_list(policy["PolicyDocument"]["Statement"]):
                for key in ("Action", "Resource"):
                    for value in as_list(statement.get(key, "*")):
                        if isinstance(value, str) and "*" in value:
                            yield f"{name}: policy {policy['PolicyName']}: {key} {value}: name it exactly"


def open_routes(template):
    """F2: the principal comes from the authorizer, so a route without one has no principal."""
    for name, resource in template["Resources"].items():
        if resource["Type"] != "AWS::ApiGatewayV2::Api":
            continue
        for path, methods in resource["Properties"]["Body"]["paths"].items():
            for method, operation in methods.items():
                if not operation.get("security"):
                    yield f"{name}: {method.upper()} {path}: no authorizer"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = sys.argv[1:]
    try:
        template = expand(source)
    except InvalidDocumentException as refused:
        reasons = "; ".join(cause.message for cause in refused.causes)
        sys.exit(f"{source}: SAM would refuse to deploy this: {reasons}")
    with open(target, "w", encoding="utf-8") as file:
        json.dump(template, file, indent=2)

    problems = [*grants_beyond_named_resources(template), *open_routes(template)]
    if problems:
        sys.exit("\n".join(f"{source}: {problem}" for problem in problems))
    print(f"{source}: expands to {len(template['Resources'])} resources; least privilege; no open route")


main()
