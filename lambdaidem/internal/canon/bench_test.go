package canon_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/lambdaidem/toolkit/lambdaidem/internal/canon"
)

// payment is a typical request body of about 500 bytes, as client libraries write it: compact, with
// the members in the order of a struct's fields.
const payment = `{"amount":129950,"currency":"EUR","capture":true,"description":"Commande n° 48213 – Éditions du Soleil",` +
	`"customer":{"id":"cus_9s6XKzkNRiz8i3","name":"Zoë Müller","email":"zoe.mueller@example.com","vip":false},` +
	`"shipping":{"line1":"12 rue de la Paix","line2":null,"city":"Paris","postalCode":"75002","country":"FR"},` +
	`"items":[{"sku":"BK-1001","qty":2,"price":49.95,"tags":["book","gift"]},{"sku":"BK-2040","qty":1,"price":30.05,"tags":[]}],` +
	`"metadata":{"orderId":"6735","channel":"web","note":"line one\nline \"two\""}}`

// ordinary returns a body of about size bytes, an array of payments.
func ordinary(size int) []byte {
	n := (size + len(payment)/2) / len(payment)
	return []byte("[" + strings.Repeat(payment+",", n-1) + payment + "]")
}

// jsontextCanonical computes with jsontext what Append computes, and keeps the text of numbers. It
// differs in the names that it treats as duplicates.
func jsontextCanonical(src []byte) ([]byte, error) {
	v := jsontext.Value(bytes.Clone(src))
	err := v.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	return v, err
}

func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1 << 10, 100 << 10, 1 << 20} {
		src := ordinary(size)
		b.Run(fmt.Sprintf("%dKB", size>>10), func(b *testing.B) { benchmarkAppend(b, src) })
	}
}

func benchmarkAppend(b *testing.B, src []byte) {
	b.ReportAllocs()
	b.SetBytes(int64(len(src)))
	var dst []byte
	for b.Loop() {
		dst, _ = canon.Append(dst[:0], src, canon.Limits{})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(src)), "ns/byte")
}

// BenchmarkAgainstJSONText runs Append and jsontext in turns, so that other load on the machine
// affects both alike. The ratio in the package's documentation comes from this benchmark.
func BenchmarkAgainstJSONText(b *testing.B) {
	src := ordinary(1 << 10)
	var ours, theirs time.Duration
	var dst []byte
	for b.Loop() {
		start := time.Now()
		for range 16 {
			dst, _ = canon.Append(dst[:0], src, canon.Limits{})
		}
		middle := time.Now()
		for range 16 {
			if _, err := jsontextCanonical(src); err != nil {
				b.Fatal(err)
			}
		}
		ours += middle.Sub(start)
		theirs += time.Since(middle)
	}
	n := 16 * float64(b.N)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(ours.Nanoseconds())/n, "canon-ns")
	b.ReportMetric(float64(theirs.Nanoseconds())/n, "jsontext-ns")
	b.ReportMetric(float64(theirs)/float64(ours), "ratio")
}
