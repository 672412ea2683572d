package dynamostore

import (
	"errors"
	"testing"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// under returns an option with the given keys. The first one encrypts.
func under(keys ...Key) func(*Options) {
	return func(o *Options) { o.Encryption = StaticKeys(keys...) }
}

// A table has an encrypted answer, or the encrypted step of a running attempt, or neither.
// CheckKeys reports whether the given keys decrypt it.
func TestO3_CheckKeysTriesAnswersAndSteps(t *testing.T) {
	wrong := Key{ID: "k1", Secret: keyOf("other-9").Secret}
	for name, fill := range map[string]func(*testing.T, *Store){
		"an answer": func(t *testing.T, s *Store) {
			t.Helper()
			if _, err := s.Complete(t.Context(), lease, result); err != nil {
				t.Fatal(err)
			}
		},
		"a step": func(t *testing.T, s *Store) {
			t.Helper()
			if _, err := s.SaveSteps(t.Context(), lease, lambdaidem.Steps{"charge": []byte(`1`)}, now); err != nil {
				t.Fatal(err)
			}
		},
		"neither": func(*testing.T, *Store) {},
	} {
		t.Run(name, func(t *testing.T) {
			client, table := freshTable(t)
			s := New(client, table, patient, under(keyOf("k1")))
			if _, err := s.Acquire(t.Context(), claim); err != nil {
				t.Fatal(err)
			}
			fill(t, s)
			for what, c := range map[string]struct {
				keys []Key
				want TableCode // "": no problem
			}{
				"the same key":                 {[]Key{keyOf("k1")}, ""},
				"the same key as an older one": {[]Key{keyOf("k2"), keyOf("k1")}, ""},
				"another key":                  {[]Key{keyOf("k2")}, UnreadableTexts},
				"another secret":               {[]Key{wrong}, UnreadableTexts},
			} {
				want := c.want
				if name == "neither" {
					want = ""
				}
				err := New(client, table, patient, under(c.keys...)).CheckKeys(t.Context())
				problems, _ := errors.AsType[TableProblems](err)
				if want == "" && err != nil || want != "" && (len(problems) != 1 || problems[0].Code != want) {
					t.Errorf("%s: %v; want %q", what, err, want)
				}
			}
			if err := New(client, table, patient).CheckKeys(t.Context()); err != nil {
				t.Errorf("without encryption: %v", err)
			}
		})
	}
}
