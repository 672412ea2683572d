package lambdaidem_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// settled is a store that keeps its own text in place of the handler's result, like an operator who
// settles a record.
type settled struct {
	*memstore.Store

	text string
}

func (s settled) Complete(ctx context.Context, lease lambdaidem.Lease, result lambdaidem.Result) (lambdaidem.Record, error) {
	result.Value = []byte(s.text)
	return s.Store.Complete(ctx, lease, result)
}

// A value that a person wrote replays by its value: every caller gets the same JSON.
func TestR1_ASettledValueReplaysByValue(t *testing.T) {
	type payment struct {
		ID     string             `json:"id"`
		Amount float64            `json:"amount"`
		Lines  map[string]float64 `json:"lines"`
		More   any                `json:"more"`
	}
	const written = `{"id":"p<1","amount":10.5,"lines":{"a":1,"b":2},"more":[1,{"x":null}]}`
	for text, replays := range map[string]bool{
		written: true,
		`{"more":[1,{"x":null}],"lines":{"b":2,"a":1},"amount":10.5,"id":"p<1"}`:              true,
		`{"id":"p\u003c1","amount":10.5,"lines":{"a":1,"b":2},"more":[1,{"x":null}]}`:         true,
		`{"id":"p<1","amount":10.50,"lines":{"a":1,"b":2},"more":[1,{"x":null}]}`:             false,
		`{"ID":"p<1","amount":10.5,"lines":{"a":1,"b":2},"more":[1,{"x":null}]}`:              false,
		`{"id":"p<1","amount":10.5,"lines":{"a":1,"b":2},"more":[1,{"x":null}],"currency":1}`: false,
		`{"id":"p<1","amount":"10.5","lines":{"a":1,"b":2},"more":[1,{"x":null}]}`:            false,
		`{"id":"p<1","amount":10.500000000000000001,"lines":{"a":1,"b":2},"more":[1]}`:        false,
		`[]`: false,
	} {
		guard := lambdaidem.New(settled{memstore.New(), text}, func(o *lambdaidem.Options) { o.Namespace, o.Observer = "n", lambdaidem.Discard })
		call := func() (payment, error) {
			return lambdaidem.Do(t.Context(), guard, lambdaidem.Call{Operation: "pay", Key: "k"}, func(context.Context) (payment, error) { return payment{}, nil })
		}
		if _, err := call(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			got, err := call()
			if !replays {
				if !errors.Is(err, lambdaidem.ErrAnswerUnreadable) {
					t.Errorf("%s replays as %+v, %v", text, got, err)
				}
				continue
			}
			its, marshalled := json.Marshal(got)
			if err != nil || marshalled != nil || string(its) != `{"id":"p\u003c1","amount":10.5,"lines":{"a":1,"b":2},"more":[1,{"x":null}]}` {
				t.Errorf("%s replays as %s, %v", text, its, err)
			}
		}
	}
}
