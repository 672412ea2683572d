package main

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// content is a kind of answer. For the same size it always makes the same answer.
type content struct {
	name string
	what string // description for the page
	make func(size int) (body string, base64 bool)
}

var contents = []content{
	{"JSON", "a list of orders, no two alike, as an application would answer", func(size int) (string, bool) { return orders(size), false }},
	{"noise", "random bytes, like an image or an encrypted file; in the event they are base64", func(size int) (string, bool) { return noise(size), true }},
}

// answer returns the handler's response, with a body of size bytes.
func (c content) answer(size int) events.APIGatewayV2HTTPResponse {
	body, encoded := c.make(size)
	kind := "application/json"
	if encoded {
		kind = "application/octet-stream"
	}
	return events.APIGatewayV2HTTPResponse{
		StatusCode: http.StatusCreated, Headers: map[string]string{"Content-Type": kind}, Body: body, IsBase64Encoded: encoded,
	}
}

// orders returns JSON of exactly size bytes. size must be at least 100.
func orders(size int) string {
	random := rand.New(rand.NewPCG(1, 2))
	cities := []string{"Aarhus", "Bergen", "Cádiz", "Dresden", "Eger", "Faro", "Graz", "Haarlem"}
	states := []string{"paid", "packed", "sent", "delivered", "returned"}
	var b strings.Builder
	b.Grow(size)
	b.WriteString(`{"orders":[`)
	for separator := ""; ; separator = "," {
		next := fmt.Sprintf(`%s{"id":"ord_%016x","amount":%d,"currency":"EUR","state":%q,"city":%q,"postalCode":"%05d","placed":"2026-%02d-%02dT%02d:%02d:%02dZ"}`,
			separator, random.Uint64(), random.IntN(100_000), states[random.IntN(len(states))], cities[random.IntN(len(cities))], random.IntN(100_000),
			1+random.IntN(12), 1+random.IntN(28), random.IntN(24), random.IntN(60), random.IntN(60))
		if b.Len()+len(next)+len(`],"more":""}`) > size {
			break
		}
		b.WriteString(next)
	}
	b.WriteString(`],"more":"`)
	b.WriteString(strings.Repeat("x", size-b.Len()-len(`"}`)))
	b.WriteString(`"}`)
	return b.String()
}

// noise returns size random bytes, encoded as base64.
func noise(size int) string {
	source := rand.NewChaCha8([32]byte{1})
	all := make([]byte, size)
	_, _ = source.Read(all) // never fails
	return base64.StdEncoding.EncodeToString(all)
}
