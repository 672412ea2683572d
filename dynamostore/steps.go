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

// Values of the attribute "encoding" in a record that has steps and is not completed.
// Versions of this package that don't know steps refuse to read a record with one of these
// values. Otherwise they would run the handler again without the stored results.
const (
	encodedSteps = "steps"
	sealedSteps  = "sealed steps" // the results are encrypted
)

// SaveSteps stores the results of an attempt's steps with one conditional UpdateItem. It implements
// [lambdaidem.StepStore]. Each save writes all steps of the record, and consumes write units for
// the whole item. DynamoDB limits an item to 400 KB. Of these, 8 KB are reserved for the record's
// other attributes, some of which later attempts and operators add. If the steps do not fit in the
// rest, SaveSteps sends nothing and returns a [lambdaidem.StoreError] with ReasonTooLarge.
func (s *Store) SaveSteps(ctx context.Context, lease lambdaidem.Lease, steps lambdaidem.Steps, now time.Time) (lambdaidem.Record, error) {
	newItm, err := s.itemWithSteps(ctx, lease.ID, lease.Token, steps)
	if err != nil {
		return lambdaidem.Record{}, err
	}
	oldItm, err := s.update(ctx, &s.writes.saving, newItm, given{now: now, token: lease.Token, steps: integer{int64(len(steps)), true}})
	if err == nil {
		oldItm.setSteps(encodedSteps, steps)
		return oldItm.record(), nil
	}
	if !errors.Is(err, wire.ErrRefused) {
		return lambdaidem.Record{}, err
	}
	if !oldItm.heldBy(lease.Token) {
		current := s.shown(oldItm)
		if current.GoneAt(now) {
			current = lambdaidem.Record{}
		}
		return current, lambdaidem.ErrLeaseLost
	}
	current, err := s.decrypted(ctx, opSaveSteps, oldItm)
	switch {
	case err != nil:
		return lambdaidem.Record{}, err
	case current.GoneAt(now):
		return lambdaidem.Record{}, lambdaidem.ErrLeaseLost
	case maps.EqualFunc(current.Steps, steps, bytes.Equal): // an earlier request with the same steps was applied
		return current, nil
	}
	return lambdaidem.Record{}, &lambdaidem.StoreError{Op: opSaveSteps, Reason: lambdaidem.ReasonInvalid, NotApplied: true,
		Err: fmt.Errorf("the record has %d steps; a save of %d others comes late: %w", len(current.Steps), len(steps), errStepsGrow)}
}

var errStepsGrow = errors.New("steps only grow")

// itemWithSteps returns the item for an update that stores steps in a record. The error is a
// StoreError. It has ReasonTooLarge if the steps are larger than maxStepsSize allows.
func (s *Store) itemWithSteps(ctx context.Context, id, token string, steps lambdaidem.Steps) (*item, error) {
	itm := &item{ID: id, Token: token}
	if err := s.setSteps(ctx, itm, steps); err != nil {
		return nil, err
	}
	if size := s.layout.size(itm); size > maxStepsSize {
		return nil, stepsTooLarge(size)
	}
	return itm, nil
}

// setSteps sets the steps of an item in memory. With Options.Encryption, it encrypts their
// results. The error is a StoreError.
func (s *Store) setSteps(ctx context.Context, itm *item, steps lambdaidem.Steps) error {
	if s.keys == nil {
		itm.setSteps(encodedSteps, steps)
		return nil
	}
	encrypted, err := s.sealSteps(ctx, itm, steps)
	if err != nil {
		return err
	}
	itm.setSteps(sealedSteps, encrypted)
	return nil
}

// setSteps stores a copy of steps in the item, together with the encoding of the steps. If
// there are no steps, it removes the item's steps and their encoding.
func (itm *item) setSteps(encoding string, steps lambdaidem.Steps) {
	itm.dropSteps()
	if len(steps) == 0 {
		return
	}
	itm.Steps, itm.Encoding = make(lambdaidem.Steps, len(steps)), optionalText{encoding, true}
	for name, result := range steps {
		itm.Steps[name] = append([]byte{}, result...)
	}
}

// dropSteps removes the item's steps. A completed record has none, because a replay does
// not need them.
func (itm *item) dropSteps() { itm.Steps, itm.Encoding = nil, optionalText{} }

// marksSteps reports whether the item is a valid record with steps: it has steps, its attribute
// "encoding" is encodedSteps or sealedSteps, and it is in progress or released.
func (itm *item) marksSteps() bool {
	return itm.Encoding.isSet && (itm.Encoding.s == encodedSteps || itm.sealsSteps()) && len(itm.Steps) > 0 &&
		(itm.Status == lambdaidem.InProgress || itm.Status == lambdaidem.Released)
}

// strangeSteps returns what is wrong with the steps of an item that is not completed, or "" if
// nothing is wrong. It finds one fault: the item has steps, but not the attribute "encoding" that
// goes with them. Such an item was last written by a version of this package that does not know
// steps.
func (itm *item) strangeSteps() string {
	if len(itm.Steps) > 0 && !itm.marksSteps() {
		return "it has " + attrSteps + " and no " + attrEncoding + ": a version that knows no steps has written over it"
	}
	return ""
}

// stepResults is the attribute "steps" of a record, a map from the name of each step to its
// result. An item without steps does not have the attribute. A result is stored as a
// string if it is valid UTF-8, as JSON is, and otherwise as binary.
type stepResults lambdaidem.Steps

// write returns the value of the attribute "steps", or nil if there are no steps.
func (r *stepResults) write() types.AttributeValue {
	if len(*r) == 0 {
		return nil
	}
	m := make(attributes, len(*r))
	for name, result := range *r {
		own := append(payload{}, result...) // not nil, even if the result is empty: valueOf omits a nil payload
		m[name] = valueOf(&own)
	}
	return &types.AttributeValueMemberM{Value: m}
}

// read sets the steps from v, the value of the attribute "steps". It returns "" if v has a valid
// form. Otherwise it returns a description of the valid form, such as "a map", for an error text.
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
