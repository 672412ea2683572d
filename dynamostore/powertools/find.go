package powertools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// The error codes of this package. [Find] also returns codes of package lambdaidem.
const (
	ErrPayloadMismatch  lambdaidem.Code = "powertools_payload_mismatch"  // 422: the Powertools record of the data has a different validated payload
	ErrRecordUnreadable lambdaidem.Code = "powertools_record_unreadable" // 500: the item is not a Powertools record, its payload can't be compared, or its answer can't be returned as an Out
)

// ErrNoRecord says that Powertools has stored no record for an event. The function that selects an
// event's data for [Handler] returns ErrNoRecord instead of a Selection. Handler then runs the
// user's handler without looking in the table of Powertools. Before you return ErrNoRecord, check
// that there is no record: some versions of Powertools store one even for an event that lacks the
// data to select; see [ErrNothingSelected].
var ErrNoRecord = errors.New("powertools: the old function stored no record for this event")

// Selection is what the old function, which used Powertools, selected from an event: the data that
// identifies the event, and the data that must not change when the event is repeated.
type Selection struct {
	// Data is the data that identifies the event: the result of event_key_jmespath, or the whole
	// event if the old function did not set that option. For the format, see [Language.ID].
	Data json.RawMessage

	// Validated is the data that must be the same when the event is repeated: what
	// payload_validation_jmespath selects. If it is nil, the payload is not compared.
	Validated json.RawMessage

	// ID is the id of the record, such as "payments.app.handler#" and a hash. Set it if
	// [Language.ID] can't make the id. Find then ignores Data.
	ID string
}

const (
	retryAfter = time.Second // the Retry-After of refusals; a guard has the same default

	// maxSkew is how much the clocks of two machines may differ: the default of
	// lambdaidem.Options.MaxSkew. An attempt counts as dead only maxSkew after its deadline.
	maxSkew = 2 * time.Second
)

// Find looks for the answer that Powertools has stored for the selected data. It reads the record
// with one consistent GetItem. Call it in a guarded handler, message handler or function, before
// any effect:
//
//	answer, found, err := powertools.Find[Receipt](ctx, records, powertools.Selection{Data: order})
//	if err != nil || found {
//		return answer, err
//	}
//
// [Handler] does the same around a handler. Without a guard, two calls at the same time may both
// find nothing. Find returns:
//
//   - the answer and true, if the record is completed;
//   - false, if there is no record, or if Options.Until has passed;
//   - false, if the record has expired and its attempt can't be running any more;
//   - false, if the attempt died and Options.Policy is Rerun;
//   - an error otherwise.
//
// The handler must return the error as it is. All errors except [lambdaidem.ErrAttemptAbandoned]
// are marked with [lambdaidem.Retryable]: the guard releases its record, even under policy Hold,
// and a retry looks again. The errors, and the status that an HTTP client receives, are:
//
//   - [lambdaidem.ErrAttemptAbandoned], 409: see Options.Policy.
//   - [lambdaidem.ErrInProgress], 409: an attempt of the function that used Powertools may still be
//     running. It counts as running until 2 seconds after the deadline of its invocation or, if the
//     record does not have that deadline, until the record expires.
//   - [lambdaidem.ErrStoreUnavailable], 503: the record could not be read.
//   - [ErrPayloadMismatch], 422: Selection.Validated is set, and the record has a different
//     payload.
//   - [ErrRecordUnreadable], 500: the item under this id is not a Powertools record, or an Out
//     can't hold its whole answer. This is also the error if Selection.Validated is set and the
//     completed record has no hash of a validated payload.
//   - Any other error, such as one from [Language.ID]: 503.
//
// # Answers
//
// Find decodes the answer with encoding/json into an Out. If a member or a value of the answer is
// lost or changed, Find returns [ErrRecordUnreadable]. There are two exceptions: a member that is
// null or empty may be lost, and a null inside the answer may become an empty value. If the whole
// answer is null, Out must be a type that can be null, such as a pointer, a slice or a map.
//
// If your handler's type can't hold the stored answer, call Find with json.RawMessage, and convert
// the result. Only a json.RawMessage can hold an answer with an unpaired surrogate, or with an
// object that has two members of the same name.
//
// If the language is Java and Out is a string type, Find returns the stored text as it is, because
// Powertools for Java stores a String without quotation marks.
func Find[Out any](ctx context.Context, r *Records, s Selection) (answer Out, found bool, err error) {
	if r.ended() {
		return answer, false, nil
	}
	rec, err := r.get(ctx, s)
	if err != nil || rec == nil {
		return answer, false, err
	}
	now := r.opts.Clock()
	died := rec.running() && rec.hasDied(now)
	if rec.hasExpired(now) || died && r.opts.Policy == lambdaidem.Rerun {
		return answer, false, nil
	}
	validated := rec.validation != ""    // the old function validated payloads when it stored the record
	if s.Validated != nil && validated { // before Hold applies: a request with another payload is not that of the attempt that died
		if err := r.validate(rec, s.Validated); err != nil {
			return answer, false, err
		}
	}
	switch {
	case died:
		return answer, false, lambdaidem.Uncertain(&lambdaidem.Error{
			Code: lambdaidem.ErrAttemptAbandoned, Status: http.StatusConflict,
			Detail: "An earlier attempt of this request ended without a known outcome. An operator must examine it before the key can be used again.",
			Err:    fmt.Errorf("powertools: the attempt of the record %s died in the old function: find out what it did, then settle the guard's record", rec),
		})
	case rec.running():
		return answer, false, lambdaidem.Retryable(&lambdaidem.Error{
			Code: lambdaidem.ErrInProgress, Status: http.StatusConflict, RetryAfter: retryAfter,
			Detail: "A request with this idempotency key is in progress. Repeat this request later to get its answer.",
			Err:    fmt.Errorf("powertools: the record %s is in progress in the old function", rec),
		})
	case s.Validated != nil && !validated:
		return answer, false, unreadable(rec, errNotValidated)
	}
	if err := rec.decodeAnswer(r.language, &answer); err != nil {
		return *new(Out), false, unreadable(rec, err)
	}
	return answer, true, nil
}

// get reads the record of a selection. It returns nil if there is none.
func (r *Records) get(ctx context.Context, s Selection) (*record, error) {
	id := s.ID
	if id == "" {
		var err error
		if id, err = r.language.id(r.opts.Hash, r.prefix, s.Data); err != nil {
			return nil, lambdaidem.Retryable(err)
		}
	}
	key := map[string]types.AttributeValue{r.opts.IDAttribute: &types.AttributeValueMemberS{Value: id}}
	if r.opts.SortKeyAttribute != "" {
		key[r.opts.SortKeyAttribute] = key[r.opts.IDAttribute]
		key[r.opts.IDAttribute] = &types.AttributeValueMemberS{Value: r.opts.PartitionKey}
	}
	out, err := r.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &r.table, Key: key, ConsistentRead: aws.Bool(true)})
	rec := &record{id: id, table: r.table}
	switch {
	case err != nil:
		return nil, lambdaidem.Retryable(&lambdaidem.Error{
			Code: lambdaidem.ErrStoreUnavailable, Status: http.StatusServiceUnavailable, RetryAfter: retryAfter,
			Detail: "The request was not carried out, because it is not known at the moment whether an earlier one was. Repeat it later.",
			Err:    fmt.Errorf("powertools: the record %s can't be read: %w", rec, err),
		})
	case len(out.Item) == 0:
		return nil, nil //nolint:nilnil // no record
	}
	if err := rec.take(out.Item, &r.opts); err != nil {
		return nil, unreadable(rec, err)
	}
	return rec, nil
}

// validate returns an error unless the record has the hash of the given payload.
func (r *Records) validate(rec *record, payload json.RawMessage) error {
	want, err := r.language.validation(r.opts.Hash, payload)
	if err != nil {
		return lambdaidem.Retryable(err)
	}
	if rec.validation != want {
		return lambdaidem.Retryable(lambdaidem.Reject(http.StatusUnprocessableEntity, ErrPayloadMismatch,
			"An earlier request had the same key and another payload. Send the request with a key of its own."))
	}
	return nil
}

// errNotValidated says why the payload of a request can't be compared with that of a record. Find
// does not report this as ErrPayloadMismatch: after a mismatch, a client sends its request with a
// new key, although the request may already have been carried out.
var errNotValidated = errors.New("it has no hash of a validated payload, so the old function did not validate payloads when it stored the record: " +
	"return a Selection without Validated to accept its answer")

// unreadable returns the error for a record that can't be understood.
func unreadable(rec *record, err error) error {
	e := lambdaidem.Reject(http.StatusInternalServerError, ErrRecordUnreadable,
		"An earlier request with this key may have been carried out, but its answer can't be read. Do not send the request with a new key.")
	if own, ok := errors.AsType[*lambdaidem.Error](e); ok {
		own.Err = fmt.Errorf("powertools: the record %s: %w", rec, err)
	}
	return lambdaidem.Retryable(e)
}
