package dynamostore

import (
	"strconv"
	"time"

	"github.com/lambdaidem/toolkit/dynamostore/internal/lowlevel"
	"github.com/lambdaidem/toolkit/lambdaidem"
)

// given holds the values for the value placeholders of a condition, such as :token. A field that
// the condition does not use has its zero value.
type given struct {
	now    time.Time          // :now_s, :now_ms and :in_progress; every condition uses them, because it includes isGone
	token  string             // :token
	oldRec *lambdaidem.Record // :seen_token, :seen_state, :seen_end and :completed
	steps  integer            // :step_count, the number of steps
}

// attributes returns the ExpressionAttributeValues as a map for the SDK.
func (g *given) attributes() attributes {
	values := attributes{
		":now_s":       number(deletionOf(g.now).n),
		":now_ms":      number(g.now.UnixMilli()),
		":in_progress": str(lambdaidem.InProgress),
	}
	if g.token != "" {
		values[":token"] = str(g.token)
	}
	if oldRec := g.oldRec; oldRec != nil {
		values[":seen_token"] = str(oldRec.Token)
		values[":seen_state"] = str(oldRec.State)
		values[":seen_end"] = number(oldRec.LeaseEnd.UnixMilli())
		values[":completed"] = str(lambdaidem.Completed)
	}
	if g.steps.isSet {
		values[":step_count"] = number(g.steps.n)
	}
	return values
}

// appendTo appends the ExpressionAttributeValues as members of a JSON object.
func (g *given) appendTo(b []byte) []byte {
	b = strconv.AppendInt(append(b, `":now_s":{"N":"`...), deletionOf(g.now).n, 10)
	b = strconv.AppendInt(append(b, `"},":now_ms":{"N":"`...), g.now.UnixMilli(), 10)
	b = append(b, `"},":in_progress":{"S":"`+string(lambdaidem.InProgress)+`"}`...)
	if g.token != "" {
		b = lowlevel.AppendString(append(b, `,":token":{"S":`...), g.token)
		b = append(b, '}')
	}
	if oldRec := g.oldRec; oldRec != nil {
		b = lowlevel.AppendString(append(b, `,":seen_token":{"S":`...), oldRec.Token)
		b = lowlevel.AppendString(append(b, `},":seen_state":{"S":`...), string(oldRec.State))
		b = strconv.AppendInt(append(b, `},":seen_end":{"N":"`...), oldRec.LeaseEnd.UnixMilli(), 10)
		b = append(b, `"},":completed":{"S":"`+string(lambdaidem.Completed)+`"}`...)
	}
	if g.steps.isSet {
		b = strconv.AppendInt(append(b, `,":step_count":{"N":"`...), g.steps.n, 10)
		b = append(b, `"}`...)
	}
	return b
}
