package dynamostore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// packed is an answer as the table stores it, for example compressed, encrypted or divided into
// parts.
type packed struct {
	result   lambdaidem.Result // the result to store in the record
	partData []byte            // the bytes to write in parts before the record is completed; nil if the record contains the answer
}

// pack compresses and encrypts an answer as the options demand, and decides whether the answer is
// stored in the record or in parts. It writes nothing to DynamoDB. It returns a StoreError if the
// answer exceeds Options.MaxAnswer, or if no encryption key is available.
func (s *Store) pack(ctx context.Context, lease lambdaidem.Lease, result lambdaidem.Result) (packed, error) {
	o := &s.opts
	result.Apart = nil
	answer := result.Value
	// Keep the failure lambdaidem.NoAnswer in the record, in plain text: a purge has no encryption
	// key, and must see that there is nothing to erase.
	if saysNoAnswer(result.Failure) {
		return packed{result: result}, nil
	}
	if f := result.Failure; f != nil {
		if s.keys == nil && len(f.Code)+len(f.Type)+len(f.Message) <= o.MaxInline {
			return packed{result: result}, nil
		}
		var err error
		if answer, err = json.Marshal(f); err != nil { // can't happen: a Failure consists of strings and a number
			panic(err)
		}
	}
	if len(answer) > o.MaxAnswer {
		return packed{}, &lambdaidem.StoreError{Op: opComplete, Reason: lambdaidem.ReasonTooLarge, NotApplied: true,
			Err: fmt.Errorf("the answer has %d bytes; Options.MaxAnswer is %d", len(answer), o.MaxAnswer)}
	}
	data, encoding := o.compress(answer)
	if s.keys == nil && encoding == encodingPlain && result.Failure == nil && len(answer) <= o.MaxInline {
		return packed{result: result}, nil
	}
	a := &apart{Encoding: encoding, Parts: parts{Length: len(answer), Failure: result.Failure != nil}}
	summed := answer
	if s.keys != nil {
		var err error
		if data, err = s.sealAnswer(ctx, lease, a, data); err != nil {
			return packed{}, err
		}
		summed = data // a checksum of the plaintext would let anyone who can read the table confirm a guess
	}
	a.Parts.Checksum = checksum(lease.ID, lease.Token, a.Encoding, summed)
	result.Value, result.Failure, result.Apart = nil, nil, a
	if len(data) <= o.MaxInline {
		a.Data = data
		return packed{result: result}, nil
	}
	a.Parts.Count = (len(data) + partSize - 1) / partSize
	return packed{result: result, partData: data}, nil
}

// prepare makes a result ready for the write that completes the record: it compresses and encrypts
// the answer, and writes the parts of a large one. It returns the result to store, or a StoreError.
// After an error, some parts may remain in the table until they expire. No record refers to them.
// Don't confuse prepare with Prepare, which only fetches the encryption key.
func (s *Store) prepare(ctx context.Context, lease lambdaidem.Lease, result lambdaidem.Result) (lambdaidem.Result, error) {
	p, err := s.pack(ctx, lease, result)
	if err == nil {
		err = s.writeParts(ctx, lease, p)
	}
	return p.result, err
}
