package dynamostore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdaidem/toolkit/dynamostore/internal/lowlevel"
	"github.com/lambdaidem/toolkit/dynamostore/internal/wire"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

var _ lambdaidem.StepStore = (*Store)(nil)

// These are the encodings of an item that is not completed and has steps. A
// version of this package that knows no steps refuses every encoding, and so the
// item, instead of running it again without them.
const (
	encodedSteps = "steps"
	sealedSteps  = "sealed steps" // each of them is encrypted
)

// SaveSteps stores the steps by one conditional UpdateItem. They are written
// whole, and the write pays for the whole item. Steps that no item can hold are
// refused before anything is sent.
func (s *Store) SaveSteps(ctx context.Context, lease lambdaidem.Lease, steps lambdaidem.Steps, now time.Time) (lambdaidem.Record, error) {
	ours := &item{ID: lease.ID, Token: lease.Token}
	if err := s.keepSteps(ctx, ours, steps); err != nil {
		return lambdaidem.Record{}, err
	}
	if size := s.layout.size(ours); size > maxItemSize {
		return lambdaidem.Record{}, tooLarge(opSaveSteps, size)
	}
	stood, err := s.update(ctx, &s.writes.saving, ours, given{now: now, token: lease.Token, steps: integer{int64(len(steps)), true}})
	if err == nil {
		stood.keepSteps(encodedSteps, steps)
		return stood.record(), nil
	}
	if !errors.Is(err, wire.ErrRefused) {
		return lambdaidem.Record{}, err
	}
	if !stood.heldBy(lease.Token) {
		seen := s.shown(stood)
		if seen.GoneAt(now) {
			seen = lambdaidem.Record{}
		}
		return seen, lambdaidem.ErrLeaseLost
	}
	seen, err := s.decrypted(ctx, opSaveSteps, stood)
	switch {
	case err != nil:
		return lambdaidem.Record{}, err
	case seen.GoneAt(now):
		return lambdaidem.Record{}, lambdaidem.ErrLeaseLost
	case maps.EqualFunc(seen.Steps, steps, bytes.Equal): // an earlier try of this request was applied
		return seen, nil
	}
	return lambdaidem.Record{}, &lambdaidem.StoreError{Op: opSaveSteps, Reason: lambdaidem.ReasonInvalid, NotApplied: true,
		Err: fmt.Errorf("the record has %d steps; a save of %d others comes late: %w", len(seen.Steps), len(steps), errStepsGrow)}
}

var errStepsGrow = errors.New("steps only grow")

// keepSteps gives the item these steps, encrypted where that is asked for. The error
// is a StoreError.
func (s *Store) keepSteps(ctx context.Context, it *item, steps lambdaidem.Steps) error {
	if s.keys == nil {
		it.keepSteps(encodedSteps, steps)
		return nil
	}
	stored, err := s.sealSteps(ctx, it, steps)
	if err != nil {
		return err
	}
	it.keepSteps(sealedSteps, stored)
	return nil
}

// keepSteps gives the item these steps, of its own.
func (it *item) keepSteps(encoding string, steps lambdaidem.Steps) {
	it.dropSteps()
	if len(steps) == 0 {
		return
	}
	it.Steps, it.Encoding = make(lambdaidem.Steps, len(steps)), optionalText{encoding, true}
	for name, result := range steps {
		it.Steps[name] = append([]byte{}, result...)
	}
}

// dropSteps takes the steps away: a replay needs none.
func (it *item) dropSteps() { it.Steps, it.Encoding = nil, optionalText{} }

// marksSteps reports whether the encoding is that of an item with steps.
func (it *item) marksSteps() bool {
	return it.Encoding.there && (it.Encoding.s == encodedSteps || it.sealsSteps()) && len(it.Steps) > 0 &&
		(it.Status == lambdaidem.InProgress || it.Status == lambdaidem.Released)
}

// strangeSteps says what keeps an item that is not completed from being a record
// with these steps; "" if nothing does.
func (it *item) strangeSteps() string {
	if len(it.Steps) > 0 && !it.marksSteps() {
		return "it has " + attrSteps + " and no " + attrEncoding + ": a version that knows no steps has written over it"
	}
	return ""
}

// stepResults is steps by their names; none is absent. A result is a string
// attribute while it is UTF-8, as JSON is, and a binary one otherwise.
type stepResults lambdaidem.Steps

func (r *stepResults) write() types.AttributeValue {
	if len(*r) == 0 {
		return nil
	}
	m := make(attributes, len(*r))
	for name, result := range *r {
		own := append(payload{}, result...) // an empty result is none that is absent
		m[name] = valueOf(&own)
	}
	return &types.AttributeValueMemberM{Value: m}
}

func (r *stepResults) read(v types.AttributeValue) string {
	m, ok := v.(*types.AttributeValueMemberM)
	if !ok {
		return "a map"
	}
	if len(m.Value) == 0 {
		return ""
	}
	*r = make(stepResults, len(m.Value))
	for name, result := range m.Value {
		own := payload{}
		if takeValue(&own, result) != "" {
			return "a map of strings and binaries"
		}
		(*r)[name] = own
	}
	return ""
}

func (r *stepResults) present() bool                   { return len(*r) > 0 }
func (r *stepResults) size() int                       { return sizeOfValue(r.write()) }
func (r *stepResults) appendTo(b []byte) []byte        { return appendRare(b, r) }
func (r *stepResults) take(of *lowlevel.Reader) string { return takeRare(of, r) }
