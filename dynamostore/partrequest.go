package dynamostore

import (
	"github.com/lambdaidem/toolkit/dynamostore/internal/lowlevel"
	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
)

// partRequest is a request that reads or writes one part of a large answer.
type partRequest struct {
	wire.Request

	attrs attributes // set by a read: the attributes of the part; empty if there is no such part
}

func (s *Store) partRequest(op wire.Operation, body []byte) *partRequest {
	r := &partRequest{Request: wire.Request{Operation: op, Tables: s.tables, Body: body}}
	r.Answer = r
	return r
}

// puttingPart returns the PutItem that writes a part. It has no condition, because the
// part's id contains a checksum of the answer: a second write can only write the same data.
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

// gettingPart returns the consistent GetItem of a part.
func (s *Store) gettingPart(id string) *partRequest {
	return s.partRequest(wire.GetItem, s.getBody(id))
}

// Success implements [wire.Answer]. It returns false if body is not a valid response. If the
// request reads a part, Success decodes the part.
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

// Refusal implements [wire.Answer]. It reports that no condition failed, because requests for
// parts have none.
func (*partRequest) Refusal(string) bool { return false }
