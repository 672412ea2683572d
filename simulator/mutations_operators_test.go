//go:build !race

package simulator

import (
	"bytes"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// operatorMutations are mistakes in the operations of operators.
var operatorMutations = []mistake{
	{Mutation{Name: "unconditional settle", Request: unconditional("settle")}, []Check{CheckAsShown}},
	{Mutation{Name: "unconditional release by an operator", Request: unconditional("operator's release")}, []Check{CheckAsShown}},
	{Mutation{Name: "release of a live lease", Operator: func(o *dynamostore.OperatorOptions) { o.Force = true }}, []Check{CheckOperatorWaits}},
	{Mutation{Name: "no margin for the database's clock", Operator: func(o *dynamostore.OperatorOptions) { o.MaxSkew = 1 }}, []Check{CheckOperatorWaits}},
	{Mutation{Name: "purge of a record in progress", Request: both(unseen("forget"), unseen("erase")), Reply: inProgressLooksReleased}, []Check{CheckPurgeSpares}},
	{Mutation{Name: "unconditional purge", Request: both(unseen("forget"), unseen("erase"))}, []Check{CheckPurgeSpares}},
}

// unconditional returns a Mutation.Request that removes from an operation the condition that the
// record is as it was shown.
func unconditional(verb string) func(string, []byte) []byte {
	return both(unseen(verb), rewrite(verb, seenEnd, always("#lease_end", ":seen_end")), rewrite(verb, notDone, always("#status", ":completed")))
}

// unseen returns a Mutation.Request that lets an operation change a record with any token and in
// any state.
func unseen(verb string) func(string, []byte) []byte {
	return both(rewrite(verb, seenTok, always("#token", ":seen_token")), rewrite(verb, seenSt, always("#status", ":seen_state")))
}

// inProgressLooksReleased makes records in progress look released in the replies to Scan.
func inProgressLooksReleased(op string, _ []byte, _ int, body []byte) []byte {
	if op != "Scan" {
		return body
	}
	return bytes.ReplaceAll(body, []byte(`"INPROGRESS"`), []byte(`"RELEASED"`))
}
