package queue

import (
	"errors"
	"fmt"
	"net/http"
)

// ErrClosed is what a call returns that waits, or begins, after Close.
var ErrClosed = errors.New("queue: the service is closed")

// Error is a refusal by SQS, under the names that AWS gives it ("Amazon SQS API
// Reference", the Errors of each action, and "Common Error Types").
type Error struct {
	// Code is the name of the error's shape, such as QueueDoesNotExist: the type
	// in the SDK's types package, and __type on the wire.
	Code string
	// QueryCode is the name from the time of the query protocol, such as
	// AWS.SimpleQueueService.NonExistentQueue: what the SDK's ErrorCode returns,
	// and the header x-amzn-query-error on the wire.
	QueryCode string
	// Status is the HTTP status.
	Status int
	// Message is for people.
	Message string
}

// Error returns the code and the message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// shape is an error's fixed part.
type shape struct {
	code, queryCode string
	status          int
}

// The shapes, with the traits httpError and awsQueryError of the SDK's model of
// SQS. The last five are common to all of AWS and not modelled there.
var (
	batchEntryIDsNotDistinct = shape{"BatchEntryIdsNotDistinct", "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", http.StatusBadRequest}
	batchRequestTooLong      = shape{"BatchRequestTooLong", "AWS.SimpleQueueService.BatchRequestTooLong", http.StatusBadRequest}
	emptyBatchRequest        = shape{"EmptyBatchRequest", "AWS.SimpleQueueService.EmptyBatchRequest", http.StatusBadRequest}
	invalidAddress           = shape{"InvalidAddress", "InvalidAddress", http.StatusNotFound}
	invalidAttributeName     = shape{"InvalidAttributeName", "InvalidAttributeName", http.StatusBadRequest}
	invalidAttributeValue    = shape{"InvalidAttributeValue", "InvalidAttributeValue", http.StatusBadRequest}
	invalidBatchEntryID      = shape{"InvalidBatchEntryId", "AWS.SimpleQueueService.InvalidBatchEntryId", http.StatusBadRequest}
	invalidMessageContents   = shape{"InvalidMessageContents", "InvalidMessageContents", http.StatusBadRequest}
	messageNotInflight       = shape{"MessageNotInflight", "AWS.SimpleQueueService.MessageNotInflight", http.StatusBadRequest}
	overLimit                = shape{"OverLimit", "OverLimit", http.StatusForbidden}
	purgeQueueInProgress     = shape{"PurgeQueueInProgress", "AWS.SimpleQueueService.PurgeQueueInProgress", http.StatusForbidden}
	queueDeletedRecently     = shape{"QueueDeletedRecently", "AWS.SimpleQueueService.QueueDeletedRecently", http.StatusBadRequest}
	queueDoesNotExist        = shape{"QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", http.StatusBadRequest}
	queueNameExists          = shape{"QueueNameExists", "QueueAlreadyExists", http.StatusBadRequest}
	receiptHandleIsInvalid   = shape{"ReceiptHandleIsInvalid", "ReceiptHandleIsInvalid", http.StatusNotFound}
	resourceNotFound         = shape{"ResourceNotFoundException", "ResourceNotFoundException", http.StatusNotFound}
	tooManyEntries           = shape{"TooManyEntriesInBatchRequest", "AWS.SimpleQueueService.TooManyEntriesInBatchRequest", http.StatusBadRequest}
	unsupportedOperation     = shape{"UnsupportedOperation", "AWS.SimpleQueueService.UnsupportedOperation", http.StatusBadRequest}

	invalidParameterValue = shape{"InvalidParameterValueException", "InvalidParameterValue", http.StatusBadRequest}
	missingParameter      = shape{"MissingRequiredParameterException", "MissingParameter", http.StatusBadRequest}
	unknownOperation      = shape{"UnknownOperationException", "InvalidAction", http.StatusBadRequest}
	serialization         = shape{"SerializationException", "MalformedInput", http.StatusBadRequest}
	serviceUnavailable    = shape{"ServiceUnavailable", "ServiceUnavailable", http.StatusServiceUnavailable}
)

func (s shape) error(format string, args ...any) *Error {
	return &Error{Code: s.code, QueryCode: s.queryCode, Status: s.status, Message: fmt.Sprintf(format, args...)}
}

func noSuchQueue() *Error { return queueDoesNotExist.error("The specified queue does not exist.") }

func missing(parameter string) *Error {
	return missingParameter.error("The request must contain the parameter %s.", parameter)
}

func badValue(value any, parameter, reason string) *Error {
	return invalidParameterValue.error("Value %v for parameter %s is invalid. Reason: %s", value, parameter, reason)
}

func outOfRange(value any, parameter string, low, high int) *Error {
	return badValue(value, parameter, fmt.Sprintf("Must be between %d and %d, if provided.", low, high))
}
