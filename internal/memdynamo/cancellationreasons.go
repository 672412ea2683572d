package memdynamo

import (
	"fmt"
	"net/http"
	"strings"
)

// The codes of a cancellation reason, as DynamoDB spells them.
const (
	ReasonNone                            = "None"
	ReasonConditionalCheckFailed          = "ConditionalCheckFailed"
	ReasonItemCollectionSizeLimitExceeded = "ItemCollectionSizeLimitExceeded"
	ReasonProvisionedThroughputExceeded   = "ProvisionedThroughputExceeded"
	ReasonThrottling                      = "ThrottlingError"
	ReasonTransactionConflict             = "TransactionConflict"
	ReasonValidation                      = "ValidationError"
)

// reasonMessages has the message for each code that a simulator may choose (API reference,
// TransactWriteItems, TransactionCanceledException).
var reasonMessages = map[string]string{
	ReasonNone:                            "",
	ReasonConditionalCheckFailed:          conditionFailed,
	ReasonItemCollectionSizeLimitExceeded: "Collection size exceeded.",
	ReasonProvisionedThroughputExceeded:   "The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API.",
	ReasonThrottling:                      "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your table or index so please try again shortly. If exceptions persist, check if you have a hot key: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html",
	ReasonTransactionConflict:             "Transaction is ongoing for the item",
	ReasonValidation:                      "One or more parameter values were invalid.",
}

// reason is why one action of a transaction can't be done. Its code is ReasonNone if the action
// can be done.
type reason struct {
	Code    string
	Item    Item   `json:",omitempty"`
	Message string `json:",omitempty"`
}

// Canceled returns the reply with a TransactionCanceledException, for a simulator that cancels a
// transaction instead of serving it. codes has one of the Reason constants for each action, in
// the order of the request. Canceled panics if a code is none of these constants. The messages
// are those of DynamoDB. No reason has an Item.
func Canceled(codes ...string) (status int, header http.Header, out []byte) {
	reasons := make([]reason, len(codes))
	for i, code := range codes {
		message, ok := reasonMessages[code]
		if !ok {
			panic(fmt.Sprintf("memdynamo: %q is not the code of a cancellation reason", code))
		}
		reasons[i] = reason{Code: code, Message: message}
	}
	return errorReply(canceled(reasons), "SIMULATED")
}

func canceled(reasons []reason) *apiError {
	codes := make([]string, len(reasons))
	for i, r := range reasons {
		codes[i] = r.Code
	}
	e := failf(TransactionCanceled, "Transaction cancelled, please refer cancellation reasons for specific reasons [%s]", strings.Join(codes, ", "))
	e.reasons = reasons
	return e
}
