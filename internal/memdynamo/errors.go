package memdynamo

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"strconv"
)

// The error types of DynamoDB's replies ("Error handling with DynamoDB", "Common Errors").
const (
	ConditionalCheckFailed        = "ConditionalCheckFailedException"
	IdempotentParameterMismatch   = "IdempotentParameterMismatchException"
	InternalServerError           = "InternalServerError"
	InvalidSignature              = "InvalidSignatureException" // also for an expired signature
	ProvisionedThroughputExceeded = "ProvisionedThroughputExceededException"
	ReplicatedWriteConflict       = "ReplicatedWriteConflictException" // another Region of a [Strong] table is writing the item
	RequestLimitExceeded          = "RequestLimitExceeded"
	ResourceInUse                 = "ResourceInUseException"
	ResourceNotFound              = "ResourceNotFoundException"
	Serialization                 = "SerializationException"
	ServiceUnavailable            = "ServiceUnavailable"
	Throttling                    = "ThrottlingException"
	TransactionCanceled           = "TransactionCanceledException" // see [Canceled]
	TransactionConflict           = "TransactionConflictException" // for a single write or a read; for a transaction, see [ReasonTransactionConflict]
	TransactionInProgress         = "TransactionInProgressException"
	UnknownOperation              = "UnknownOperationException"
	Validation                    = "ValidationException"
	AccessDenied                  = "AccessDeniedException"
)

// namespaces has the prefix before the '#' in __type for the errors whose prefix is not
// DynamoDB's own.
var namespaces = map[string]string{
	Validation:    "com.amazon.coral.validate",
	Serialization: "com.amazon.coral.service",
	AccessDenied:  "com.amazon.coral.service",

	InvalidSignature: "com.amazon.coral.service",
	Throttling:       "com.amazon.coral.availability",
}

// statuses has the HTTP status of each error whose status is not 400.
var statuses = map[string]int{
	InternalServerError: http.StatusInternalServerError,
	ServiceUnavailable:  http.StatusServiceUnavailable,
}

// conditionFailed is the message for a condition that does not hold.
const conditionFailed = "The conditional request failed"

// apiError is an error that is sent as a reply.
type apiError struct {
	typ     string
	message string
	item    Item     // the item, if a condition failed and ALL_OLD was requested
	reasons []reason // reasons of a canceled transaction
}

func (e *apiError) Error() string { return e.typ + ": " + e.message }

func failf(typ, format string, args ...any) *apiError {
	return &apiError{typ: typ, message: fmt.Sprintf(format, args...)}
}

// Error returns the reply with an error of this type, for a simulator that fails a request
// instead of serving it. The status is 500 for [InternalServerError], 503 for
// [ServiceUnavailable], and 400 for all other types.
func Error(typ, message string) (status int, header http.Header, out []byte) {
	return errorReply(failf(typ, "%s", message), "SIMULATED")
}

func errorReply(e *apiError, requestID string) (int, http.Header, []byte) {
	namespace, ok := namespaces[e.typ]
	if !ok {
		namespace = "com.amazonaws.dynamodb.v20120810"
	}
	status, ok := statuses[e.typ]
	if !ok {
		status = http.StatusBadRequest
	}
	typ := namespace + "#" + e.typ
	switch e.typ {
	case TransactionCanceled, TransactionInProgress, IdempotentParameterMismatch: // in these types, Message has a capital M
		return reply(status, struct {
			Type                string   `json:"__type"`
			CancellationReasons []reason `json:",omitempty"`
			Message             string
		}{typ, e.reasons, e.message}, requestID)
	}
	return reply(status, struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
		Item    Item   `json:"Item,omitempty"`
	}{typ, e.message, e.item}, requestID)
}

// reply returns a reply with the headers that DynamoDB sends.
func reply(status int, content any, requestID string) (int, http.Header, []byte) {
	body, err := json.Marshal(content)
	if err != nil {
		panic(fmt.Sprintf("memdynamo: an answer can't be written: %v", err)) // can't happen: stored values were checked
	}
	header := http.Header{}
	header.Set("Content-Type", "application/x-amz-json-1.0")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	header.Set("X-Amzn-Requestid", requestID)
	return status, header, body
}
