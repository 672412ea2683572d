package lambdaidem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

type (
	genericError[T any]   struct{ of T }
	genericPointer[T any] struct{ of T }
)

func (e genericError[T]) Error() string    { return fmt.Sprint("generic ", e.of) }
func (e *genericPointer[T]) Error() string { return fmt.Sprint("generic pointer ", e.of) }

// onTheWire returns what Lambda answers, byte for byte: the payload, or the error's document as
// aws-lambda-go's runtime writes it.
func onTheWire(t *testing.T, h any, event string) string {
	t.Helper()
	out, err := lambda.NewHandler(h).Invoke(t.Context(), []byte(event))
	if err == nil {
		return string(out)
	}
	reported, ok := err.(messages.InvokeResponse_Error) //nolint:errorlint // as aws-lambda-go asks
	if !ok {
		_, reported.Type, reported.Message = invoke(t, h, event)
	}
	text, err := json.Marshal(reported)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The first failure and its replay are byte for byte the same, and have the errorType of the marked
// error, however it is wrapped and whatever its type is.
func TestX2_APermanentFailureIsTheSameBytesOnTheWire(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a pointer":            {lambdaidem.Permanent(&declined{"stolen"}), `{"errorMessage":"card declined: stolen","errorType":"declined"}`},
		"wrapped":              {fmt.Errorf("charge: %w", lambdaidem.Permanent(&declined{"stolen"})), `{"errorMessage":"charge: card declined: stolen","errorType":"declined"}`},
		"wrapped inside":       {lambdaidem.Permanent(fmt.Errorf("charge: %w", &declined{"stolen"})), `{"errorMessage":"charge: card declined: stolen","errorType":"wrapError"}`},
		"wrapped twice":        {fmt.Errorf("b: %w", fmt.Errorf("a: %w", lambdaidem.Permanent(&declined{"stolen"}))), `{"errorMessage":"b: a: card declined: stolen","errorType":"declined"}`},
		"joined":               {errors.Join(lambdaidem.Permanent(&declined{"stolen"}), errors.New("and more")), `{"errorMessage":"card declined: stolen\nand more","errorType":"declined"}`},
		"marked twice":         {lambdaidem.Permanent(lambdaidem.Permanent(&declined{"stolen"})), `{"errorMessage":"card declined: stolen","errorType":"declined"}`},
		"another mark inside":  {lambdaidem.Permanent(lambdaidem.Retryable(&declined{"stolen"})), `{"errorMessage":"card declined: stolen","errorType":"declined"}`},
		"generic":              {lambdaidem.Permanent(genericError[int]{7}), `{"errorMessage":"generic 7","errorType":"genericError[int]"}`},
		"generic of a type":    {lambdaidem.Permanent(genericError[order]{order{"o"}}), `{"errorMessage":"generic {o}","errorType":"genericError[github.com/lambdaidem/toolkit/lambdaidem_test.order]"}`},
		"a generic pointer":    {lambdaidem.Permanent(&genericPointer[string]{"x"}), `{"errorMessage":"generic pointer x","errorType":"genericPointer[string]"}`},
		"rejected":             {lambdaidem.Reject(404, "no_order", "There is none."), `{"errorMessage":"no_order: There is none.","errorType":"no_order"}`},
		"rejected and marked":  {lambdaidem.Permanent(lambdaidem.Reject(503, "closed", "It is night.")), `{"errorMessage":"closed: It is night.","errorType":"closed"}`},
		"rejected and wrapped": {fmt.Errorf("find: %w", lambdaidem.Reject(404, "no_order", "There is none.")), `{"errorMessage":"find: no_order: There is none.","errorType":"wrapError"}`},
		"Lambda's own":         {lambdaidem.Permanent(messages.InvokeResponse_Error{Type: "Card.Declined", Message: "stolen"}), `{"errorMessage":"stolen","errorType":"Card.Declined"}`},
		"not UTF-8":            {lambdaidem.Permanent(&declined{"stol\xffen"}), `{"errorMessage":"card declined: stol�en","errorType":"declined"}`},
		"for HTML":             {lambdaidem.Permanent(&declined{"<b>"}), `{"errorMessage":"card declined: \u003cb\u003e","errorType":"declined"}`},
	} {
		t.Run(name, func(t *testing.T) {
			g, runs := lambdaidem.New(memstore.New(), quiet), 0
			h := lambdaidem.Handler(g, "charge", func(_ context.Context, o order) (string, error) { return o.ID, nil }, func(context.Context, order) (receipt, error) {
				runs++
				return receipt{}, c.err
			})
			for i := range 3 {
				if got := onTheWire(t, h, `{"ID":"o-1"}`); got != c.want {
					t.Errorf("answer %d is %s, want %s", i, got, c.want)
				}
			}
			if runs != 1 {
				t.Errorf("the handler ran %d times", runs)
			}
		})
	}
}

// A typed handler that returns the error of an inner call reports the type of that error,
// whether the inner record is released or has the error, and however deep the call is.
func TestX2_AnErrorOfAnInnerCallKeepsItsErrorType(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"released":  {&declined{"stolen"}, `{"errorMessage":"card declined: stolen","errorType":"declined"}`},
		"retryable": {lambdaidem.Retryable(&declined{"stolen"}), `{"errorMessage":"card declined: stolen","errorType":"declined"}`},
		"rejected":  {lambdaidem.Reject(404, "no_order", "There is none."), `{"errorMessage":"no_order: There is none.","errorType":"no_order"}`},
		"for now":   {lambdaidem.Reject(503, "closed", "It is night."), `{"errorMessage":"closed: It is night.","errorType":"closed"}`},
	} {
		g := lambdaidem.New(memstore.New(), quiet)
		inside := func(ctx context.Context, operation string, f func(context.Context) (receipt, error)) (receipt, error) {
			return lambdaidem.Do(ctx, g, lambdaidem.Call{Operation: operation, Key: "the-card"}, f)
		}
		h := lambdaidem.Handler(g, "order", func(_ context.Context, o order) (string, error) { return o.ID, nil }, func(ctx context.Context, _ order) (receipt, error) {
			return inside(ctx, "pay", func(ctx context.Context) (receipt, error) {
				return inside(ctx, "charge", func(context.Context) (receipt, error) { return receipt{}, c.err })
			})
		})
		for _, event := range []string{`{"ID":"o-1"}`, `{"ID":"o-1"}`, `{"ID":"o-2"}`} {
			if got := onTheWire(t, h, event); got != c.want {
				t.Errorf("%s, %s is answered %s, want %s", name, event, got, c.want)
			}
		}
	}
}

// A failure that replays inside another call keeps its errorType there too.
func TestX2_AFailureThatReplaysInsideKeepsItsErrorType(t *testing.T) {
	g := lambdaidem.New(memstore.New(), quiet)
	h := lambdaidem.Handler(g, "order", func(_ context.Context, o order) (string, error) { return o.ID, nil }, func(ctx context.Context, _ order) (receipt, error) {
		return lambdaidem.Do(ctx, g, lambdaidem.Call{Operation: "charge", Key: "the-card"}, func(context.Context) (receipt, error) {
			return receipt{}, lambdaidem.Permanent(&declined{"stolen"})
		})
	})
	want := `{"errorMessage":"card declined: stolen","errorType":"declined"}`
	for _, event := range []string{`{"ID":"o-1"}`, `{"ID":"o-1"}`, `{"ID":"o-2"}`, `{"ID":"o-2"}`} {
		if got := onTheWire(t, h, event); got != want {
			t.Errorf("%s is answered %s, want %s", event, got, want)
		}
	}
}
