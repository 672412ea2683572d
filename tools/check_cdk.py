"""Compares what the CDK program of docs/deploy.md makes with the sample's templates.

Usage: check_cdk.py SYNTHESIZED EXPANDED MONITORING

SYNTHESIZED is the program's template, EXPANDED is template.yaml as SAM expands it, and MONITORING is
monitoring.yaml. Exits 1 and says why if the program's table, policies, mappings, watch function or
alarms differ from the sample's.
"""

import json
import sys

from samcli.yamlhelper import yaml_parse

# The properties of a mapping that decide what happens to a message that fails.
MAPPING = (
    "BatchSize",
    "BisectBatchOnFunctionError",
    "FunctionResponseTypes",
    "MaximumRecordAgeInSeconds",
    "MaximumRetryAttempts",
    "StartingPosition",
)
TABLE = (
    "AttributeDefinitions",
    "BillingMode",
    "GlobalSecondaryIndexes",
    "KeySchema",
    "PointInTimeRecoverySpecification",
    "TimeToLiveSpecification",
)
ALARMS_ON = {
    *("Errors", "StoreError", "Uncertain", "Abandoned", "AnswerLost", "Unreadable"),
    *("RecentDeadLeases", "HeldRecords", "OldestHeldRecord", "TTLDisabled", "DeadLeases"),
}


def of_type(template, kind):
    return {name: r["Properties"] for name, r in template["Resources"].items() if r["Type"] == kind}


def named(resources, prefix):
    """The one resource whose logical id begins with prefix; CDK appends a hash."""
    (found,) = (r for name, r in resources.items() if name.startswith(prefix))
    return found


def as_list(value):
    return value if isinstance(value, list) else [value]


def grants(statements, table):
    """The statements about a table, as pairs of what is allowed and on what part of the table."""
    pairs = set()
    for s in statements:
        resource = json.dumps(s["Resource"])
        if table in resource:
            pairs.add((s["Effect"], *sorted(as_list(s["Action"])), "index/leases" if "/index/leases" in resource else "table"))
    return pairs


def policy(template, name):
    """The statements of CDK's policy of a function's role."""
    return named(of_type(template, "AWS::IAM::Policy"), name)["PolicyDocument"]["Statement"]


def inline(role):
    return [s for p in role["Policies"] for s in p["PolicyDocument"]["Statement"]]


def mapping(properties):
    # -1, no limit of retries, is CloudFormation's default.
    chosen = {"MaximumRetryAttempts": -1 if "StartingPosition" in properties else None, "BisectBatchOnFunctionError": None}
    chosen.update({name: properties[name] for name in MAPPING if name in properties})
    return {**chosen, "on failure": "DestinationConfig" in properties}


def mappings(template):
    return sorted((mapping(m) for m in of_type(template, "AWS::Lambda::EventSourceMapping").values()), key=json.dumps)


def alarms(template):
    """What each metric's alarm has, by the metric."""
    found = {}
    for properties in of_type(template, "AWS::CloudWatch::Alarm").values():
        metrics = [
            {**m["MetricStat"]["Metric"], "Statistic": m["MetricStat"]["Stat"], "Period": m["MetricStat"]["Period"]}
            for m in properties.get("Metrics", [])
            if "MetricStat" in m
        ] or [properties]
        for m in metrics:
            if m["Namespace"] not in ("Lambdaidem", "AWS/Lambda"):
                continue
            found[m["MetricName"]] = {
                "namespace": m["Namespace"],
                "dimensions": sorted(d["Name"] for d in m["Dimensions"]),
                "statistic": m["Statistic"],
                "period": m["Period"],
                "points": properties.get("DatapointsToAlarm", properties["EvaluationPeriods"]),
                **{name: properties[name] for name in ("EvaluationPeriods", "Threshold", "ComparisonOperator", "TreatMissingData")},
                "notifies": bool(properties.get("AlarmActions")) and bool(properties.get("OKActions")),
            }
    return found


def compare(page, sample, monitoring):
    table, wanted = named(of_type(page, "AWS::DynamoDB::Table"), "Idempotency"), of_type(sample, "AWS::DynamoDB::Table")["IdempotencyTable"]
    yield "the table", {name: table.get(name) for name in TABLE}, {name: wanted.get(name) for name in TABLE}

    roles = of_type(sample, "AWS::IAM::Role")
    yield "a function's policy", grants(policy(page, "Guarded"), "Idempotency"), grants(
        next(p for p in roles["PaymentsRole"]["Policies"] if p["PolicyName"] == "idempotency-records")["PolicyDocument"]["Statement"], "IdempotencyTable"
    )
    yield "the watch's policy", grants(policy(page, "Watch"), "Idempotency"), grants(inline(roles["WatchRole"]), "IdempotencyTable")
    yield "the mappings", mappings(page), mappings(sample)

    watch, function = named(of_type(page, "AWS::Lambda::Function"), "Watch"), of_type(sample, "AWS::Lambda::Function")["WatchFunction"]
    for name in ("Architectures", "Handler", "MemorySize", "Runtime", "Timeout"):
        yield f"the watch's {name}", watch.get(name), function.get(name)
    names = lambda f: sorted(name for name in f["Environment"]["Variables"] if name != "ACCOUNTS_TABLE")  # all samples have that one
    yield "the watch's variables", names(watch), names(function)
    for name in ("LogFormat", "ApplicationLogLevel"):
        yield f"the watch's {name}", watch["LoggingConfig"].get(name), function["LoggingConfig"].get(name)
    schedule = lambda t: [rule["ScheduleExpression"] for rule in of_type(t, "AWS::Events::Rule").values()]
    yield "the watch's schedule", schedule(page), schedule(sample)

    ours, theirs = alarms(page), alarms(monitoring)
    yield "the metrics with an alarm", set(ours), ALARMS_ON
    for metric in sorted(ours):
        yield f"the alarm on {metric}", ours[metric], theirs.get(metric)


def main(synthesized, expanded, monitoring):
    with open(synthesized, encoding="utf-8") as file:
        page = json.load(file)
    with open(expanded, encoding="utf-8") as file:
        sample = json.load(file)
    with open(monitoring, encoding="utf-8") as file:
        parsed = yaml_parse(file.read())
    compared, different = 0, []
    for what, got, want in compare(page, sample, parsed):
        compared += 1
        if got != want:
            different.append(f"docs/deploy.md, CDK: {what} is\n  {got}\nthe sample's is\n  {want}")
    if different:
        sys.exit("\n".join(different))
    print(f"the CDK program makes what the sample has: {compared} comparisons")


if __name__ == "__main__":
    main(*sys.argv[1:])
