package dynamostore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// worse returns the more severe of two statuses.
func worse(a, b HealthStatus) HealthStatus {
	rank := []HealthStatus{HealthUnknown, HealthPass, HealthWarn, HealthFail}
	if slices.Index(rank, b) > slices.Index(rank, a) {
		return b
	}
	return a
}

// resultOf returns the result of a probe whose request ended with err. The status is pass if
// DynamoDB allowed the action: a failed condition, or a conflict with a transaction, shows that
// too. Throttling is a warning, and any other error is a failure. If DynamoDB refuses the request
// as invalid, Check.Detail includes keyHint, a text that says what the primary key must be.
func (c *HealthCheck) resultOf(name, table, keyHint string, err error) Check {
	if err == nil {
		return Check{Status: HealthPass}
	}
	if _, refused := errors.AsType[*types.ConditionalCheckFailedException](err); refused {
		return Check{Status: HealthPass}
	}
	failure := failed(name, wire.NotApplied, err)
	found := func(status HealthStatus, code TableCode, format string, args ...any) Check {
		return Check{Status: status, Code: code, Err: failure, Detail: fmt.Sprintf("%s on table %q ", name, table) +
			fmt.Sprintf(format, args...) + fmt.Sprintf(" (cause: %v)", failure.Err)}
	}
	switch failure.Reason {
	case lambdaidem.ReasonConflict:
		return Check{Status: HealthPass}
	case lambdaidem.ReasonThrottled:
		return found(HealthWarn, Throttled, "is throttled; requests that meet this on every try are answered with 503")
	case lambdaidem.ReasonTimeout:
		return found(HealthFail, TimedOut, "got no answer in time; look at the network, and at the AWS Health Dashboard")
	case lambdaidem.ReasonUnreachable:
		return found(HealthFail, Unreachable, "found no connection; look at the endpoint, and in a VPC at its routes, endpoints and security groups")
	case lambdaidem.ReasonInvalid:
		// DynamoDB refuses a request with the wrong key as invalid.
		return found(HealthFail, WrongKey, "is refused as invalid; %s", keyHint)
	case lambdaidem.ReasonNoTable:
		return found(HealthFail, NoTable, "found no such table in Region %s of this account, or one that is not ACTIVE; "+
			"create it, or correct the name, the Region or the credentials", c.client.Options().Region)
	case lambdaidem.ReasonPermission:
		return found(HealthFail, NoPermission, "is not allowed, or there are no valid credentials; add dynamodb:%s to the function's policy", name)
	case lambdaidem.ReasonUnknown, lambdaidem.ReasonTooLarge, lambdaidem.ReasonEncoding, lambdaidem.ReasonForeign, lambdaidem.ReasonKey:
	}
	return found(HealthFail, CheckFailed, "failed")
}
