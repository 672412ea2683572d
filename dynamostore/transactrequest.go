package dynamostore

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/lowlevel"
	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
)

// transactRequest is a TransactWriteItems request, with the reasons if DynamoDB cancelled it.
type transactRequest struct {
	wire.Request

	record    bool                                // the first action writes the record
	actions   int                                 // the number of actions, including the record's
	cancelled *types.TransactionCanceledException // DynamoDB's error if the record's condition failed, set by Refusal; otherwise nil
}

// transacting returns a TransactWriteItems with the given ClientRequestToken. The parameter record
// is the JSON of the action that writes the record, or nil if no action does. The error is a
// WriteError.
//
// The request is encoded only once, because DynamoDB may refuse a request with the same token but
// other bytes.
func (s *Store) transacting(token string, record []byte, writes []*Write) (*transactRequest, error) {
	r := &transactRequest{record: record != nil, actions: len(writes)}
	r.Operation, r.Answer = wire.TransactWriteItems, r
	if r.record {
		r.actions++
		r.Tables = append(r.Tables, s.table)
	}
	var err error
	r.Body = encoded(func(b []byte) []byte {
		b = lowlevel.AppendString(append(b, `{"ClientRequestToken":`...), token)
		b = append(append(b, `,"TransactItems":[`...), record...)
		for i, w := range writes {
			if i > 0 || r.record {
				b = append(b, ',')
			}
			var ok bool
			action := w.action()
			if b, ok = lowlevel.AppendAction(b, &action); !ok {
				err = &WriteError{Write: w.name, Err: errUnwritable}
				return b
			}
			r.Tables = append(r.Tables, tableOf(&action))
		}
		return append(b, "]}"...)
	})
	return r, err
}

var errUnwritable = errors.New("it has no table, item or key, or an attribute whose value is nil")

// putAction returns the JSON of a Put, one of the actions in a transaction. The Put writes the
// whole record in itm, if the condition of the write w holds. The parameter g has the values of the
// placeholders in that condition.
func (s *Store) putAction(w *write, itm *item, g given) []byte {
	return encoded(func(b []byte) []byte {
		b = append(append(b, `{"Put":`...), w.action...)
		b = s.layout.appendItem(append(b, `,"Item":`...), itm)
		b = g.appendTo(append(b, `,"ExpressionAttributeValues":{`...))
		return append(b, "}}}"...)
	})
}

// updateAction returns the JSON of an Update, one of the actions in a transaction. The Update makes
// the write w with the new values in itm, if the condition of w holds. The parameter g has the
// values of the placeholders in that condition.
func (s *Store) updateAction(w *write, itm *item, g given) []byte {
	return encoded(func(b []byte) []byte {
		b = append(append(b, `{"Update":`...), w.action...)
		return append(s.appendUpdate(b, w, itm, g), '}')
	})
}

// Success implements [wire.Answer].
func (*transactRequest) Success(body string) bool { return isObject(body) }

// Refusal implements [wire.Answer]. It reports whether the transaction was cancelled because the
// condition of the action on the record failed, whatever the reasons of the other actions are.
// After any other cancellation, Refusal returns false, so that the caller gets the SDK's error.
func (r *transactRequest) Refusal(body string) bool {
	cancelled, ok := lowlevel.Cancellation(body)
	if !ok {
		if plain, is := lowlevel.Plain(body, "__type", "message", "Message", "CancellationReasons"); is {
			cancelled, ok = lowlevel.Cancellation(plain)
		}
	}
	if !ok || !r.record || len(cancelled.CancellationReasons) != r.actions ||
		aws.ToString(cancelled.CancellationReasons[0].Code) != cancelCondition {
		return false
	}
	r.cancelled = cancelled
	return true
}

// tableOf returns the name or ARN of the action's table, or "" if the action names none.
func tableOf(item *types.TransactWriteItem) string {
	switch {
	case item.Put != nil:
		return aws.ToString(item.Put.TableName)
	case item.Update != nil:
		return aws.ToString(item.Update.TableName)
	case item.Delete != nil:
		return aws.ToString(item.Delete.TableName)
	case item.ConditionCheck != nil:
		return aws.ToString(item.ConditionCheck.TableName)
	}
	return ""
}
