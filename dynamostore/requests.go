package dynamostore

import (
	"bytes"
	"errors"
	"sync"

	"github.com/lambdaidem/toolkit/dynamostore/internal/lowlevel"
	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
)

// recordRequest is a request that reads or writes one record, together with the item that DynamoDB
// returned.
type recordRequest struct {
	wire.Request

	layout *layout
	member string // the JSON member with the item in a successful response, such as "Attributes"; "" if the response has no item

	item    *item // the item in the response; nil if there is none, or it is not a valid record
	foreign error // why the item in the response is not a valid record; nil if it is valid or there is none
}

// recordRequest returns a request for the operation op with the given body. The returned request is
// also the [wire.Answer] that decodes DynamoDB's response. The parameter member is the name of the
// JSON member that contains the item in the response, or "" if the response has no item.
func (s *Store) recordRequest(op wire.Operation, member string, body []byte) *recordRequest {
	r := &recordRequest{Request: wire.Request{Operation: op, Tables: s.tables, Body: body}, layout: s.layout, member: member}
	r.Answer = r
	return r
}

// locking returns the PutItem that takes the lease by writing itm as a new record. The condition of
// the PutItem is lockIsFree: there is no record, or the record has expired and has no live lease. g
// has the values of the condition's placeholders.
func (s *Store) locking(itm *item, g given) *recordRequest {
	return s.recordRequest(wire.PutItem, "", encoded(func(b []byte) []byte {
		b = append(b, s.writes.lock.head...)
		b = s.layout.appendItem(append(b, `,"Item":`...), itm)
		b = g.appendTo(append(b, `,"ExpressionAttributeValues":{`...))
		return append(b, "}}"...)
	}))
}

// updating returns the conditional UpdateItem that makes the write w. Each attribute that w changes
// is set to its value in itm, or removed if itm has no value for it.
func (s *Store) updating(w *write, itm *item, g given) *recordRequest {
	return s.recordRequest(wire.UpdateItem, "Attributes", encoded(func(b []byte) []byte {
		return s.appendUpdate(append(b, w.head...), w, itm, g)
	}))
}

// getting returns a GetItem request for the record with the given id, with a strongly consistent
// read.
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

// Success implements [wire.Answer]. It decodes the response to a successful request with the fast,
// strict decoder or, if that fails, with the slow, tolerant one. It returns false if both fail. If
// the operation returns no item (r.member is ""), Success only checks that the body is a JSON
// object.
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

// isObject reports whether the body is a complete JSON object. It checks the response to a write
// that returns no item. DynamoDB sends an object without members today. isObject also accepts
// members, because DynamoDB may add members one day.
func isObject(body string) bool {
	if lowlevel.Empty(body) {
		return true
	}
	_, ok := lowlevel.Plain(body)
	return ok
}

// Refusal implements [wire.Answer]. It reports whether the error response in body means that the
// condition of the write failed. If so, it also decodes the existing item, which DynamoDB
// includes in the response.
func (r *recordRequest) Refusal(body string) bool {
	if r.Operation == wire.GetItem { // a read has no condition
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

// refused returns the result of a conditional write that ended with err. If err is nil, both
// results are nil. If the condition failed, refused returns wire.ErrRefused and the existing item,
// or a nil item if the table has none. Any other error becomes a StoreError.
func (r *recordRequest) refused(op string, fate wire.Fate, err error) (*item, error) {
	switch {
	case err == nil:
		return nil, nil
	case !errors.Is(err, wire.ErrRefused):
		return nil, failed(op, fate, err)
	case r.foreign != nil: // none of the tries was applied: each would have left a valid record
		return nil, failed(op, wire.NotApplied, r.foreign)
	}
	return r.item, wire.ErrRefused
}

// buffers is a pool of buffers for encoding requests.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// encoded calls encode with a buffer from the pool, and returns a copy of what encode
// appended. The buffer itself can't be the request's body, because HTTP clients may read
// the body after the call has returned.
func encoded(encode func([]byte) []byte) []byte {
	const maxPooled = 64 << 10 // bytes; larger buffers are left to the garbage collector
	buffer, _ := buffers.Get().(*[]byte)
	b := encode((*buffer)[:0])
	body := bytes.Clone(b)
	if cap(b) <= maxPooled {
		*buffer = b
		buffers.Put(buffer)
	}
	return body
}

// appendUpdate appends the second half of an update's JSON: the key, the UpdateExpression and
// the values. The caller has already written the first half: w.head for an UpdateItem request,
// or w.action for an Update in a transaction.
func (s *Store) appendUpdate(b []byte, w *write, itm *item, g given) []byte {
	b = s.layout.appendKey(append(b, `,"Key":`...), itm.ID)
	b = append(b, `,"UpdateExpression":"`...)
	b = s.layout.appendExpression(b, w.sets, itm)
	b = g.appendTo(append(b, `","ExpressionAttributeValues":{`...))
	b = s.layout.appendValues(b, w.sets, itm)
	return append(b, "}}"...)
}
