package lambdaidem_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// receiptWithTag has a tag that hides the old field of the same name, which is no longer used.
type receiptWithTag struct {
	Number string `json:"Ref"`
	Ref    string
}

// A step's result has an interface type, so its type is only known after the charge.
func TestE5_AStepWhoseResultHidesAFieldRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		charged := 0
		r := newRig(func(ctx context.Context, _ request) (response, error) {
			_, err := lambdaidem.Step(ctx, "charge", func(context.Context) (any, error) { charged++; return receiptWithTag{Number: "r-1"}, nil })
			if err != nil {
				return response{}, err
			}
			return response{StatusCode: http.StatusCreated}, nil
		})
		_, _ = r.handler(t.Context(), first())
		time.Sleep(2 * leaseWithoutDeadline)
		out, err := r.handler(t.Context(), first())
		if charged != 1 || out.StatusCode != http.StatusCreated {
			t.Errorf("charged %d times; %d %v", charged, out.StatusCode, err)
		}
	})
}

func TestR1_AResultThatHidesAFieldIsReplayed(t *testing.T) {
	r := newRig(nil)
	charged := 0
	do := func() error {
		_, err := lambdaidem.Do(t.Context(), r.guard, charge, func(context.Context) (any, error) { charged++; return receiptWithTag{Number: "r-1"}, nil })
		return err
	}
	if err := do(); err != nil {
		t.Fatal(err)
	}
	if err := do(); err != nil {
		t.Errorf("the retry: %v", err)
	}
}

// A step with a static type was stored by the version before. The retry runs on the new version.
func TestE5_AStoredStepWhoseTypeHidesAFieldIsRead(t *testing.T) {
	r := newRig(nil)
	n := 0
	r = r.later(func(ctx context.Context, _ request) (response, error) {
		var err error
		if n++; n == 1 { // what the version before stored: the same JSON
			_, err = lambdaidem.Step(ctx, "charge", func(context.Context) (map[string]string, error) { return map[string]string{"Ref": "r-1"}, nil })
			if err == nil {
				err = errWire
			}
			return response{}, err
		}
		_, err = lambdaidem.Step(ctx, "charge", func(context.Context) (receiptWithTag, error) { t.Error("it runs again"); return receiptWithTag{}, nil })
		return response{StatusCode: http.StatusCreated}, err
	})
	_, _ = r.handler(t.Context(), first())
	if out, err := r.handler(t.Context(), first()); err != nil || out.StatusCode != http.StatusCreated {
		t.Errorf("the retry: %d %v", out.StatusCode, err)
	}
}
