package queue

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

const (
	contentType  = "application/x-amz-json-1.0"
	targetPrefix = "AmazonSQS."

	// maxRequestBytes is far above what a batch of 1 MiB takes in JSON, where a
	// byte can become six.
	maxRequestBytes = 16 << 20
)

// action answers one request of the API.
type action func(c *call, body []byte) (any, error)

// actions are what is served, by the name in X-Amz-Target.
var actions = map[string]action{
	"CreateQueue":                  decoded((*call).createQueue),
	"GetQueueUrl":                  decoded((*call).getQueueURL),
	"ListQueues":                   decoded((*call).listQueues),
	"GetQueueAttributes":           decoded((*call).getQueueAttributes),
	"SetQueueAttributes":           decoded((*call).setQueueAttributes),
	"DeleteQueue":                  decoded((*call).deleteQueue),
	"PurgeQueue":                   decoded((*call).purgeQueue),
	"SendMessage":                  decoded((*call).sendMessage),
	"SendMessageBatch":             decoded((*call).sendMessageBatch),
	"ReceiveMessage":               decoded((*call).receiveMessage),
	"DeleteMessage":                decoded((*call).deleteMessage),
	"DeleteMessageBatch":           decoded((*call).deleteMessageBatch),
	"ChangeMessageVisibility":      decoded((*call).changeMessageVisibility),
	"ChangeMessageVisibilityBatch": decoded((*call).changeMessageVisibilityBatch),
	"StartMessageMoveTask":         decoded((*call).startMessageMoveTask),
	"ListMessageMoveTasks":         decoded((*call).listMessageMoveTasks),
}

// refused are the actions that SQS has and this package has not.
var refused = map[string]bool{
	"AddPermission": true, "RemovePermission": true, "TagQueue": true, "UntagQueue": true, "ListQueueTags": true,
	"ListDeadLetterSourceQueues": true, "CancelMessageMoveTask": true,
}

// call is one request on its way.
type call struct {
	*Service
	ctx  context.Context //nolint:containedctx // it lives as long as the request
	base string          // what queue URLs begin with
}

// decoded makes an action of a method on its decoded request.
func decoded[In, Out any](method func(*call, *In) (Out, error)) action {
	return func(c *call, body []byte) (any, error) {
		in := new(In)
		if len(body) > 0 {
			if !utf8.Valid(body) {
				return nil, serialization.error("The request is not UTF-8.")
			}
			if err := json.Unmarshal(body, in); err != nil {
				return nil, serialization.error("The request is not valid: %s", err)
			}
		}
		out, err := method(c, in)
		if _, empty := any(out).(none); empty {
			return nil, err // not an interface that holds a nil pointer
		}
		return out, err
	}
}

// ServeHTTP answers requests of the AWS JSON 1.0 protocol. It reads neither
// signatures nor the Host header, but for queue URLs where there is no
// Options.BaseURL.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("X-Amzn-Requestid", newID())
	out, err := s.answer(w, r)
	if err != nil {
		refusal := asRefusal(err)
		fault := ";Sender"
		if refusal.Status >= http.StatusInternalServerError {
			fault = ";Receiver"
		}
		header.Set("X-Amzn-Query-Error", refusal.QueryCode+fault)
		w.WriteHeader(refusal.Status)
		out = map[string]string{"__type": "com.amazonaws.sqs#" + refusal.Code, "message": refusal.Message}
	}
	if out == nil {
		return // an action without a result has an empty body
	}
	body, err := json.Marshal(out)
	if err != nil { // strings, bytes, numbers and maps of them always marshal
		panic(err)
	}
	_, _ = w.Write(body) // a client that has gone needs no answer
}

// asRefusal gives every error a shape.
func asRefusal(err error) *Error {
	if refusal := (*Error)(nil); errors.As(err, &refusal) {
		return refusal
	}
	return serviceUnavailable.error("%s", err) // ErrClosed, or the client's end
}

func (s *Service) answer(w http.ResponseWriter, r *http.Request) (any, error) {
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		return nil, unsupportedOperation.error("The query protocol is not served, only AWS JSON 1.0: use an SDK, or an AWS CLI, of 2024 or later.")
	}
	name, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), targetPrefix)
	if refused[name] {
		return nil, unsupportedOperation.error("%s is not emulated.", name)
	}
	act := actions[name]
	if r.Method != http.MethodPost || !ok || act == nil {
		return nil, unknownOperation.error("The action %q is not valid for this endpoint.", name)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBytes))
	if err != nil {
		return nil, serialization.error("The request can't be read: %s", err)
	}
	base := s.options.BaseURL
	if base == "" {
		base = "http://" + r.Host
	}
	return act(&call{Service: s, ctx: r.Context(), base: base}, body)
}
