package dynamostore

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// throttleFor responds like DynamoDB to a throttled request. The parameter member is the name of
// the list of reasons: that of ThrottlingException begins with a lower-case letter.
func throttleFor(code, member, reasons string) fault {
	return func(*http.Request, dynamodb.HTTPClient) (*http.Response, error) {
		return answer(400, `{"__type":"com.amazonaws.dynamodb.v20120810#`+code+`","message":"slower","`+member+`":`+reasons+`}`), nil
	}
}

// The error names the exceeded limit in Throttle, and its text has DynamoDB's own words.
func TestX5_WhichLimitThrottlesIsNamed(t *testing.T) {
	const table, index = "arn:aws:dynamodb:eu-central-1:123456789012:table/idempotency", "arn:aws:dynamodb:eu-central-1:123456789012:table/idempotency/index/leases"
	reason := func(reason, resource string) string {
		return `{"reason":"` + reason + `","resource":"` + resource + `"}`
	}
	client, name := freshTable(t)
	for _, c := range []struct {
		name, reasons string
		want          lambdaidem.Throttle
		says          []string
	}{
		{"none", `[]`, lambdaidem.ThrottleUnknown, nil},
		{"null", `null`, lambdaidem.ThrottleUnknown, nil},
		{"a hot key", "[" + reason("TableWriteKeyRangeThroughputExceeded", table) + "]", lambdaidem.ThrottleKeyRange, []string{"TableWriteKeyRangeThroughputExceeded of " + table}},
		{"a table too small", "[" + reason("TableReadProvisionedThroughputExceeded", table) + "]", lambdaidem.ThrottleProvisioned, []string{"TableReadProvisionedThroughputExceeded of " + table}},
		{"a maximum", "[" + reason("TableWriteMaxOnDemandThroughputExceeded", table) + "]", lambdaidem.ThrottleMaximum, []string{"TableWriteMaxOnDemandThroughputExceeded"}},
		{"a quota", "[" + reason("IndexWriteAccountLimitExceeded", index) + "]", lambdaidem.ThrottleAccount, []string{"IndexWriteAccountLimitExceeded of " + index}},
		{"several", "[" + reason("IndexWriteProvisionedThroughputExceeded", index) + "," + reason("TableWriteKeyRangeThroughputExceeded", table) + "]", lambdaidem.ThrottleKeyRange,
			[]string{"IndexWriteProvisionedThroughputExceeded of " + index, "TableWriteKeyRangeThroughputExceeded of " + table}},
		{"one that is new", "[" + reason("TableWriteMoonPhaseExceeded", table) + "]", lambdaidem.ThrottleUnknown, []string{"TableWriteMoonPhaseExceeded of " + table}},
		{"a new one and a known one", "[" + reason("TableWriteMoonPhaseExceeded", table) + "," + reason("TableWriteAccountLimitExceeded", table) + "]", lambdaidem.ThrottleAccount, []string{"MoonPhase"}},
		{"half a one", `[{}]`, lambdaidem.ThrottleUnknown, nil},
	} {
		for code, member := range map[string]string{"ProvisionedThroughputExceededException": "ThrottlingReasons", "RequestLimitExceeded": "ThrottlingReasons", "ThrottlingException": "throttlingReasons"} {
			t.Run(c.name+"/"+code, func(t *testing.T) {
				f := throttleFor(code, member, c.reasons)
				faulty, _ := over(client, f, f, f)
				_, err := New(faulty, name, quick, patient).Acquire(t.Context(), claim)
				wantStoreError(t, err, opAcquire, lambdaidem.ReasonThrottled, true)
				if e, _ := errors.AsType[*lambdaidem.StoreError](err); e.Throttle != c.want {
					t.Errorf("the limit is %q; want %q: %v", e.Throttle, c.want, err)
				}
				for _, text := range append(c.says, code) {
					if !strings.Contains(err.Error(), text) {
						t.Errorf("%q does not say %q", err, text)
					}
				}
			})
		}
	}
}

// The reasons of a cancelled transaction have other codes than errors.
func TestReasonOfCancellation(t *testing.T) {
	for code, want := range map[string]lambdaidem.Reason{
		"None": lambdaidem.ReasonUnknown, "": lambdaidem.ReasonUnknown, "ConditionalCheckFailed": lambdaidem.ReasonUnknown,
		"DuplicateItem": lambdaidem.ReasonUnknown, "SomethingNew": lambdaidem.ReasonUnknown,
		"TransactionConflict": lambdaidem.ReasonConflict, "ProvisionedThroughputExceeded": lambdaidem.ReasonThrottled, "ThrottlingError": lambdaidem.ReasonThrottled, "RequestLimitExceeded": lambdaidem.ReasonThrottled,
		"ValidationError": lambdaidem.ReasonInvalid, "ItemCollectionSizeLimitExceeded": lambdaidem.ReasonInvalid,
	} {
		if got := reasonOfCancellation(code); got != want {
			t.Errorf("%q is %q; want %q", code, got, want)
		}
	}
}
