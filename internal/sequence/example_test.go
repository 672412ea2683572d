package sequence_test

import (
	"bytes"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/lambdaidem/toolkit/internal/sequence"
)

// A client's request is carried out, and the reply is lost. The diagram is one HTML file.
func ExampleWriteHTML() {
	d := sequence.Diagram{
		Title:   "A lost reply",
		Summary: "The client can't know that it has paid.",
		Parties: []sequence.Party{
			{ID: "c", Name: "client", Kind: sequence.Client},
			{ID: "p", Name: "process 1", Kind: sequence.Process},
		},
		Events: []sequence.Event{
			{At: 0, From: "p", Kind: sequence.Begin, Text: "starts"},
			{At: 5 * time.Millisecond, From: "c", To: "p", Request: "1", Kind: sequence.Call, Text: "POST /payments", Detail: `{"amount":1250}`},
			{At: 8 * time.Millisecond, From: "p", Request: "1", Kind: sequence.Effect, Text: "pays"},
			{At: 9 * time.Millisecond, From: "p", To: "c", Request: "1", Kind: sequence.Reply, Text: "201 Created", Lost: true},
		},
	}
	var file bytes.Buffer
	if err := sequence.WriteHTML(&file, d); err != nil {
		log.Fatal(err)
	}
	_, rest, _ := strings.Cut(file.String(), "<title>")
	title, _, _ := strings.Cut(rest, "</title>")
	fmt.Println(title)

	d.Events[3].To = "bank"
	fmt.Println(sequence.WriteHTML(&file, d))
	// Output:
	// A lost reply
	// sequence: event 3 ("201 Created") names the party "bank", which is not in Parties
}
