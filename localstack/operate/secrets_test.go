package operate_test

import (
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/lambdaidem/idemtest"
	"github.com/lambdaidem/toolkit/lambdaidem/memstore"
)

// instances has two versions of a function that run at the same time during a deployment.
type instances struct {
	store  *memstore.Store
	clock  *idemtest.Clock
	before [][]byte // the secrets of the older version
}

// guardWith returns the guard of an instance with these secrets, the first of which signs.
func (i *instances) guardWith(secrets [][]byte) *lambdaidem.Guard {
	return lambdaidem.New(i.store, func(o *lambdaidem.Options) {
		o.Namespace, o.Observer, o.FingerprintSecrets = "payments", lambdaidem.Discard, secrets
		o.Clock = i.clock.Now
	})
}

// The page's steps rotate a secret without refusing a retry, although two versions of the function
// run at the same time during each step. If the old secret is removed too early, retries are
// refused until it is put back.
func TestF5_OperateMD_RotatesSecretsWithoutARefusal(t *testing.T) {
	const steps = "(?s)append the new secret to `FingerprintSecrets`, deploy everywhere; put it first, deploy everywhere; remove the old one when old records have expired.*422.*put it back"
	if page := readPage(t).section(t, "Something changes in a deployment"); !regexp.MustCompile(steps).MatchString(page) {
		t.Errorf("the page has other steps than these: %s", page)
	}
	older, newer := []byte("32 random bytes, kept in secret."), []byte("32 others, kept in secret, too!!")
	i := &instances{store: memstore.New(), clock: idemtest.NewClock(), before: [][]byte{older}}
	var keys []string
	pay := func(secrets [][]byte, key string, status int, replayed bool) {
		t.Helper()
		got := sendTo(t, i.guardWith(secrets), key, `{"amount":100}`)
		if got.status != status || got.replayed != replayed {
			t.Errorf("%s got %+v; want %d, replayed: %t", key, got, status, replayed)
		}
	}
	for _, step := range []struct {
		does    string
		secrets [][]byte
	}{
		{"nothing yet", [][]byte{older}},
		{"the new one last", [][]byte{older, newer}},
		{"the new one first", [][]byte{newer, older}},
	} {
		for name, secrets := range map[string][][]byte{"before " + step.does: i.before, step.does: step.secrets} {
			pay(secrets, name, http.StatusCreated, false)
			keys = append(keys, name)
		}
		for _, secrets := range [][][]byte{i.before, step.secrets} { // while both run
			for _, key := range keys {
				pay(secrets, key, http.StatusCreated, true)
			}
		}
		i.before = step.secrets
	}
	pay([][]byte{newer}, "nothing yet", http.StatusUnprocessableEntity, false) // the old secret, which signed the record, is removed too early
	pay([][]byte{newer, older}, "nothing yet", http.StatusCreated, true)       // the old secret is put back
	pay([][]byte{newer}, "the new one first", http.StatusCreated, true)        // a record that the new secret signed needs no other secret
	if got := sendTo(t, i.guardWith(i.before), keys[0], `{"amount":999}`); got.status != http.StatusUnprocessableEntity {
		t.Errorf("another payload got %+v; want 422", got)
	}
	i.clock.Advance(24*time.Hour + time.Second) // after the TTL, no record is left that the old secret signed
	for _, key := range keys {
		pay([][]byte{newer}, key, http.StatusCreated, false)
	}
}
