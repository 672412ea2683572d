package lambdaidem_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

func TestV1_AStreamBehindAnInterfaceIsNotStored(t *testing.T) {
	g := lambdaidem.New(memstore.New(), func(o *lambdaidem.Options) { o.Observer = lambdaidem.Discard })
	do := func() (any, error) {
		return lambdaidem.Do(t.Context(), g, lambdaidem.Call{Operation: "op", Key: "k"}, func(context.Context) (any, error) {
			return strings.NewReader("x"), nil
		})
	}
	if _, err := do(); err != nil {
		t.Fatal(err)
	}
	if v, err := do(); !errors.Is(err, lambdaidem.ErrAnswerUnavailable) {
		t.Errorf("the replay is %v, %v; want ErrAnswerUnavailable", v, err)
	}
}
