package window

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// statement is a request to DynamoDB, or one action of a transaction, as people read it.
type statement struct {
	TableName                 string
	Key, Item                 attributes
	ConditionExpression       string
	UpdateExpression          string
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues attributes
}

// attributes are values by attribute name.
type attributes map[string]types.AttributeValue

// UnmarshalJSON decodes DynamoDB's JSON.
func (a *attributes) UnmarshalJSON(b []byte) error {
	m, err := attributevalue.UnmarshalMapJSON(b)
	*a = m
	return err //nolint:wrapcheck // its caller shows the JSON instead
}

// requestText returns the body of a request to DynamoDB in short: each action with its table,
// its condition and what it writes. A body of another form is returned as it is.
func requestText(operation string, body []byte) string {
	var request struct {
		statement

		TransactItems []map[string]statement
	}
	if json.Unmarshal(body, &request) != nil {
		return string(body)
	}
	if len(request.TransactItems) == 0 {
		return request.text(operation)
	}
	var all []string
	for _, item := range request.TransactItems {
		for name, each := range item {
			all = append(all, each.text(name))
		}
	}
	return strings.Join(all, "\n\n")
}

func (s *statement) text(operation string) string {
	lines := []string{operation + " in " + s.TableName}
	if s.Key != nil {
		lines = append(lines, "key "+s.Key.text())
	}
	if s.ConditionExpression != "" {
		lines = append(lines, "only if "+s.filled(s.ConditionExpression))
	}
	if s.UpdateExpression != "" {
		lines = append(lines, s.filled(s.UpdateExpression))
	}
	if s.Item != nil {
		lines = append(lines, "item "+s.Item.text())
	}
	return strings.Join(lines, "\n")
}

var placeholder = regexp.MustCompile(`[#:]\w+`)

// filled returns an expression with names and values in place of its placeholders.
func (s *statement) filled(expression string) string {
	return placeholder.ReplaceAllStringFunc(expression, func(p string) string {
		if name, ok := s.ExpressionAttributeNames[p]; ok {
			return name
		}
		if v, ok := s.ExpressionAttributeValues[p]; ok {
			return valueText(v)
		}
		return p
	})
}

// text returns the attributes as a JSON object, in the order of their names.
func (a attributes) text() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(a)) {
		parts = append(parts, fmt.Sprintf("%s: %s", name, valueText(a[name])))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// valueText returns a value as JSON.
func valueText(v types.AttributeValue) string {
	var plain any
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	if attributevalue.Unmarshal(v, &plain) != nil {
		return "?" // a type that this version of the SDK does not know
	}
	return string(encode(plain))
}

// replyText returns the body of a reply of DynamoDB in short: an error's message, and the
// item that it contains. A body of another form is returned as it is.
func replyText(body []byte) string {
	var reply struct {
		Message             string
		Item, Attributes    attributes
		CancellationReasons []struct {
			Code, Message string
			Item          attributes
		}
	}
	if json.Unmarshal(body, &reply) != nil {
		return string(body)
	}
	var lines []string
	add := func(text string) {
		if text != "" {
			lines = append(lines, text)
		}
	}
	add(reply.Message)
	for i, reason := range reply.CancellationReasons {
		if reason.Code != "None" {
			add(fmt.Sprintf("action %d: %s %s", i+1, reason.Code, reason.Message))
		}
		if reason.Item != nil {
			add("the item as it is: " + reason.Item.text())
		}
	}
	if reply.Item != nil {
		add("the item as it is: " + reply.Item.text())
	}
	if reply.Attributes != nil {
		add("the item as it was before: " + reply.Attributes.text())
	}
	return strings.Join(lines, "\n")
}
