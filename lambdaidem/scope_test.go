package lambdaidem_test

import (
	"testing"
)

func TestF1_ATemplateIsNoPath(t *testing.T) {
	r := newRig(nil)
	a, b := first(), first()
	a.RouteKey, a.RawPath = "POST /p/{id}", "/p/{id}"
	b.RouteKey, b.RawPath = "$default", "/p/{id}"
	r.send(t, a)
	if out := r.send(t, b); replayed(out) || out.StatusCode != 201 {
		t.Errorf("another route got %+v", out)
	}
}
