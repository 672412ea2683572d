package dynamostore

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

func TestNewPanicsOnAnInvalidOptionAndNamesIt(t *testing.T) {
	client := dynamodb.New(dynamodb.Options{Region: "eu-west-1"})
	for _, c := range []struct {
		names  string
		client *dynamodb.Client
		table  string
		option func(*Options)
	}{
		{"client", nil, "records", nil},
		{"table", client, "", nil},
		{"table", client, "two words", nil},
		{"Options.Attempts", client, "records", func(o *Options) { o.Attempts = -1 }},
		{"Options.Attempts", client, "records", func(o *Options) { o.Attempts = 21 }},
		{"Options.AttemptTimeout", client, "records", func(o *Options) { o.AttemptTimeout = time.Nanosecond }},
		{"Options.BackoffBase", client, "records", func(o *Options) { o.BackoffBase = -1 }},
		{"Options.BackoffMax", client, "records", func(o *Options) { o.BackoffMax = time.Millisecond }},
		{"Options.CompressFrom", client, "records", func(o *Options) { o.CompressFrom = -1 }},
		{"Options.MaxInline", client, "records", func(o *Options) { o.MaxInline = -1 }},
		{"Options.MaxInline", client, "records", func(o *Options) { o.MaxInline = 384<<10 + 1 }},
		{"Options.LeaseIndex", client, "records", func(o *Options) { o.LeaseIndex = "of leases" }},
		{"Options.LeaseIndex", client, "records", func(o *Options) { o.LeaseIndex = "le" }},
		{"Options.LeaseShards", client, "records", func(o *Options) { o.LeaseShards = -1 }},
		{"Options.LeaseShards", client, "records", func(o *Options) { o.LeaseShards = 1001 }},
		{"Options.DataAttribute", client, "records", func(o *Options) { o.DataAttribute = "lease_shard" }},
		{"Options.MaxAnswer", client, "records", func(o *Options) { o.MaxAnswer = -1 }},
		{"Options.MaxAnswer", client, "records", func(o *Options) { o.MaxAnswer = 64<<20 + 1 }},
		{"Options.StatusAttribute", client, "records", func(o *Options) { o.StatusAttribute = "token" }},
		{"Options.StatusAttribute", client, "records", func(o *Options) { o.StatusAttribute = "part" }},
		{"Options.StatusAttribute", client, "records", func(o *Options) { o.StatusAttribute = "parts" }},
		{"Options.StatusAttribute", client, "records", func(o *Options) { o.StatusAttribute = "steps" }},
		{"Options.DataAttribute", client, "records", func(o *Options) { o.DataAttribute = "id" }},
		{"Options.IDAttribute", client, "records", func(o *Options) { o.IDAttribute = strings.Repeat("k", 256) }},
	} {
		t.Run(c.names, func(t *testing.T) {
			defer func() {
				if said := fmt.Sprint(recover()); !strings.HasPrefix(said, "dynamostore: New: "+c.names+" ") {
					t.Errorf("New panicked with %q; want it to name %s", said, c.names)
				}
			}()
			var optFns []func(*Options)
			if c.option != nil {
				optFns = append(optFns, c.option)
			}
			New(c.client, c.table, optFns...)
		})
	}
}

func TestNewTakesOptionsAtTheirBounds(*testing.T) {
	client := dynamodb.New(dynamodb.Options{Region: "eu-west-1"})
	for _, option := range []func(*Options){
		func(o *Options) { o.Attempts = 1 },
		func(o *Options) { o.Attempts = 20 },
		func(o *Options) { o.AttemptTimeout = time.Millisecond },
		func(o *Options) { o.BackoffBase, o.BackoffMax = time.Second, time.Second },
		func(o *Options) { o.BackoffBase = time.Minute }, // BackoffMax is at least BackoffBase
		func(o *Options) { o.CompressFrom, o.MaxInline, o.MaxAnswer = 1, 1, 1 },
		func(o *Options) { o.LeaseIndex, o.LeaseShards = "lea", 1 },
		func(o *Options) { o.LeaseIndex, o.LeaseShards = "leases-of.records_2", 1000 },
		func(o *Options) { o.CompressFrom, o.MaxInline, o.MaxAnswer = math.MaxInt, 384<<10, 64<<20 },
		func(o *Options) { o.IDAttribute = strings.Repeat("k", 255) },
	} {
		New(client, "records", option)
	}
}

// The waits are half of 25, 50, … 800 ms, and then half of BackoffMax.
func TestBackoffDefaultsAreTheDocumentedOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, w := inMemory(slices.Repeat([]fault{throttle}, 8)...)
		s := New(client, "test", func(o *Options) { o.Attempts, o.Random = 9, func() float64 { return 0.5 } })
		began := time.Now()
		_, err := s.Acquire(t.Context(), claim)
		const want = (25 + 50 + 100 + 200 + 400 + 800 + 1000 + 1000) * time.Millisecond / 2
		if took := time.Since(began); took != want || w.trips() != 9 {
			t.Errorf("took %v and %d attempts (%v); want %v and 9", took, w.trips(), err, want)
		}
	})
}

// A table's name has 3 to 255 characters of A-Z a-z 0-9 _ . - (AWS, "Naming rules").
func TestATableNameIsDynamoDBs(t *testing.T) {
	client := dynamodb.New(dynamodb.Options{Region: "eu-west-1"})
	takes := func(table string) (ok bool) {
		defer func() { ok = recover() == nil }()
		New(client, table)
		return
	}
	for _, valid := range []string{"abc", "AZaz09_.-", strings.Repeat("x", 255)} {
		if !takes(valid) {
			t.Errorf("New refuses %q", valid)
		}
	}
	for _, invalid := range []string{"ab", strings.Repeat("x", 256), "tab\n", "äöü", "abc\x00"} {
		if takes(invalid) {
			t.Errorf("New takes %q", invalid)
		}
	}
	for c := range 128 { // every ASCII character
		letter := string(rune(c))
		want := strings.Contains("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-", letter)
		if got := takes("ab" + letter); got != want {
			t.Errorf("New takes %q in a name: %v; want %v", letter, got, want)
		}
	}
}

func TestATableMayBeAnARN(t *testing.T) {
	client, w := inMemory(succeed)
	s := New(client, "arn:aws:dynamodb:eu-west-1:123456789012:table/records")
	if _, err := s.Get(t.Context(), claim.ID, now); err != nil || w.trips() != 1 {
		t.Errorf("Get: %v after %d attempts", err, w.trips())
	}
}
