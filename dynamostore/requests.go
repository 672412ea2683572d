package dynamostore

import (
	"bytes"
	"errors"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/lowlevel"
	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
)

// recordRequest is a request for a record, and the item that its answer brings along.
type recordRequest struct {
	wire.Request

	layout *layout
	member string // of the answer, which has the item; "": the answer to success has none

	item    *item // nil: there is none
	foreign error // why the item is no record
}

func (s *Store) recordRequest(op wire.Operation, member string, body []byte) *recordRequest {
	r := &recordRequest{Request: wire.Request{Operation: op, Tables: s.tables, Body: body}, layout: s.layout, member: member}
	r.Answer = r
	return r
}

// locking returns the conditional PutItem of a record.
func (s *Store) locking(it *item, g given) *recordRequest {
	return s.recordRequest(wire.PutItem, "", encoded(func(b []byte) []byte {
		b = append(b, s.writes.lock.head...)
		b = s.layout.appendItem(append(b, `,"Item":`...), it)
		b = g.appendTo(append(b, `,"ExpressionAttributeValues":{`...))
		return append(b, "}}"...)
	}))
}

// updating returns the conditional UpdateItem of a record. It sets what the item has of
// the attributes that the write is about, and removes what the item does not have.
func (s *Store) updating(w *write, it *item, g given) *recordRequest {
	return s.recordRequest(wire.UpdateItem, "Attributes", encoded(func(b []byte) []byte {
		return s.appendUpdate(append(b, w.head...), w, it, g)
	}))
}

// getting returns the consistent read of a record.
func (s *Store) getting(id string) *recordRequest {
	return s.recordRequest(wire.GetItem, "Item", s.getBody(id))
}

func (s *Store) getBody(id string) []byte {
	return encoded(func(b []byte) []byte {
		b = lowlevel.AppendString(append(b, `{"TableName":`...), s.table)
		b = s.layout.appendKey(append(b, `,"Key":`...), id)
		return append(b, `,"ConsistentRead":true}`...)
	})
}

// Success decodes the answer to a request that was carried out: see [wire.Answer].
func (r *recordRequest) Success(body string) bool {
	if r.member == "" {
		return isObject(body)
	}
	if r.decode(body) {
		return true
	}
	plain, ok := lowlevel.Plain(body, r.member)
	return ok && r.decode(plain)
}

func (r *recordRequest) decode(body string) (ok bool) {
	r.item, ok, r.foreign = r.layout.read(func(take taker) (bool, bool) { return lowlevel.Item(body, r.member, take) })
	return ok
}

// isObject reports whether an answer is a JSON object, whatever it says: the answer to a
// write that returns nothing is empty today, and may have new members one day.
func isObject(body string) bool {
	if lowlevel.Empty(body) {
		return true
	}
	_, ok := lowlevel.Plain(body)
	return ok
}

// Refusal decodes the item that stood in the way of a write: see [wire.Answer].
func (r *recordRequest) Refusal(body string) bool {
	if r.Operation == wire.GetItem { // it has no condition
		return false
	}
	if r.decodeRefusal(body) {
		return true
	}
	plain, ok := lowlevel.Plain(body, "__type", "message", "Message", "Item")
	return ok && r.decodeRefusal(plain)
}

func (r *recordRequest) decodeRefusal(body string) (ok bool) {
	r.item, ok, r.foreign = r.layout.read(func(take taker) (bool, bool) { return lowlevel.Refusal(body, take) })
	return ok
}

// refused returns the item that stood in the way of a write that ended with err, and
// ErrRefused; or nil and a StoreError.
func (r *recordRequest) refused(op string, fate wire.Fate, err error) (*item, error) {
	switch {
	case err == nil:
		return nil, nil
	case !errors.Is(err, wire.ErrRefused):
		return nil, failed(op, fate, err)
	case r.foreign != nil: // what stands there is not what this call may have written before
		return nil, failed(op, wire.NotApplied, r.foreign)
	}
	return r.item, wire.ErrRefused
}

// buffers are those that requests are encoded in.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// encoded returns what encode appends to a buffer. It is a copy, because HTTP clients may
// read a request's body after the call has returned.
func encoded(encode func([]byte) []byte) []byte {
	const mostKept = 64 << 10 // bytes
	buffer, _ := buffers.Get().(*[]byte)
	b := encode((*buffer)[:0])
	body := bytes.Clone(b)
	if cap(b) <= mostKept {
		*buffer = b
		buffers.Put(buffer)
	}
	return body
}

// partRequest is a request for a part of an answer.
type partRequest struct {
	wire.Request

	attrs attributes // of the part that was read; empty: there is none
}

func (s *Store) partRequest(op wire.Operation, body []byte) *partRequest {
	r := &partRequest{Request: wire.Request{Operation: op, Tables: s.tables, Body: body}}
	r.Answer = r
	return r
}

// puttingPart returns the PutItem of a part, which has no condition.
func (s *Store) puttingPart(attrs attributes) *partRequest {
	return s.partRequest(wire.PutItem, encoded(func(b []byte) []byte {
		b = lowlevel.AppendString(append(b, `{"TableName":`...), s.table)
		b, ok := lowlevel.AppendAttributes(append(b, `,"Item":`...), attrs)
		if !ok {
			panic("dynamostore: a part has a value that DynamoDB does not know")
		}
		return append(b, '}')
	}))
}

// gettingPart returns the consistent read of a part.
func (s *Store) gettingPart(id string) *partRequest {
	return s.partRequest(wire.GetItem, s.getBody(id))
}

// Success decodes the part that was read: see [wire.Answer].
func (r *partRequest) Success(body string) bool {
	if r.Operation == wire.PutItem {
		return isObject(body)
	}
	if r.decode(body) {
		return true
	}
	plain, ok := lowlevel.Plain(body, "Item")
	return ok && r.decode(plain)
}

func (r *partRequest) decode(body string) bool {
	r.attrs = attributes{}
	_, ok := lowlevel.Item(body, "Item", lowlevel.Into(r.attrs))
	return ok
}

// Refusal reports false: the request has no condition.
func (*partRequest) Refusal(string) bool { return false }

// transactRequest is a transaction, and why DynamoDB cancelled it.
type transactRequest struct {
	wire.Request

	record    bool // its first action is the record's
	actions   int
	cancelled *types.TransactionCanceledException // where the record's condition does not hold
}

// transacting returns a transaction. It is encoded once: however often it is sent, it has
// the same bytes under its token. record is the record's action, if the transaction
// completes one. The error is a WriteError.
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

// putAction returns the conditional put of a record in a transaction.
func (s *Store) putAction(w *write, it *item, g given) []byte {
	return encoded(func(b []byte) []byte {
		b = append(append(b, `{"Put":`...), w.action...)
		b = s.layout.appendItem(append(b, `,"Item":`...), it)
		b = g.appendTo(append(b, `,"ExpressionAttributeValues":{`...))
		return append(b, "}}}"...)
	})
}

// updateAction returns the conditional update of a record in a transaction.
func (s *Store) updateAction(w *write, it *item, g given) []byte {
	return encoded(func(b []byte) []byte {
		b = append(append(b, `{"Update":`...), w.action...)
		return append(s.appendUpdate(b, w, it, g), '}')
	})
}

// appendUpdate appends what an update has after its head.
func (s *Store) appendUpdate(b []byte, w *write, it *item, g given) []byte {
	b = s.layout.appendKey(append(b, `,"Key":`...), it.ID)
	b = append(b, `,"UpdateExpression":"`...)
	b = s.layout.appendExpression(b, w.sets, it)
	b = g.appendTo(append(b, `","ExpressionAttributeValues":{`...))
	b = s.layout.appendValues(b, w.sets, it)
	return append(b, "}}"...)
}

// Success decodes the answer to a transaction that was carried out: see [wire.Answer].
func (*transactRequest) Success(body string) bool { return isObject(body) }

// Refusal reports whether the record's own condition does not hold, as it is with a
// duplicate; no other reason matters then. For other cancellations the SDK has the
// words.
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

// tableOf returns the table of an action, or "".
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
