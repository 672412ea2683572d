package lambdaidem_test

import (
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

func TestK4_MethodsMatchWithoutCase(t *testing.T) {
	r := newRig(nil, func(o *lambdaidem.Options) { o.Methods = []string{"put"} })
	in := first()
	in.RequestContext.HTTP.Method = "PUT"
	r.send(t, in)
	if out := r.send(t, in); !replayed(out) {
		t.Errorf("a PUT is not guarded by the method put")
	}
}
