package e2e_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestK1_QuotedAndBareAreOneKey(t *testing.T) {
	u := newUser(t)
	first := u.mustSend(t, order("abc", dinner))
	expectStatus(t, first, http.StatusCreated)
	expectReplay(t, first, u.mustSend(t, order(`"abc"`, dinner)))
	u.expectPayments(t, 1)
}

// refusedKeys are keys that every guarded route must refuse.
var refusedKeys = map[string]struct {
	keys []string
	code string
}{
	"no key":           {nil, "idempotency_key_missing"},
	"an empty key":     {[]string{""}, "idempotency_key_invalid"},
	"10 KB":            {[]string{strings.Repeat("k", 10<<10)}, "idempotency_key_invalid"},
	"256 characters":   {[]string{strings.Repeat("k", 256)}, "idempotency_key_invalid"},
	"unterminated":     {[]string{`"abc`}, "idempotency_key_invalid"},
	"not ASCII":        {[]string{"clé"}, "idempotency_key_invalid"},
	"two headers":      {[]string{"abc", "def"}, "idempotency_key_invalid"},
	"the same twice":   {[]string{"abc", "abc"}, "idempotency_key_invalid"},
	"a joined list":    {[]string{"abc, def"}, "idempotency_key_invalid"},
	"a list of quoted": {[]string{`"abc", "def"`}, "idempotency_key_invalid"},
}

func TestK2_K3_RefusedKeysStoreNothing(t *testing.T) {
	for name, tt := range refusedKeys {
		t.Run(name, func(t *testing.T) {
			u := newUser(t)
			for _, r := range []request{order("", dinner), refundOf(unknownPayment, "", `{"amount":1}`), pair{u, "bob"}.transferOf("", "")} {
				r.keys = tt.keys
				expectProblem(t, u.mustSend(t, r), http.StatusBadRequest, tt.code)
			}
			u.expectNoRecord(t)
			u.expectPayments(t, 0)
		})
	}
}
