package iam

import (
	"regexp"
	"strings"
)

// statements returns a request for each PartiQL statement of the call ("IAM security policies with
// PartiQL for DynamoDB"). The leading keys are unknown. A statement that can't be parsed needs a
// permission for all tables.
func (c *dynamoDBCall) statements() []Request {
	texts := []string{}
	if c.in.Statement != "" {
		texts = append(texts, c.in.Statement)
	}
	for _, s := range append(c.in.Statements, c.in.TransactStatements...) {
		texts = append(texts, s.Statement)
	}
	var all []Request
	for _, text := range texts {
		found := partiQL.FindStringSubmatch(text)
		if found == nil {
			all = append(all, c.request("PartiQLSelect", c.table("*")))
			continue
		}
		resource := c.table(strings.Trim(found[2], `"`))
		if found[3] != "" {
			resource += "/index/" + found[3]
		}
		verb := strings.ToUpper(found[1][:6])
		r := c.request("PartiQL"+verb[:1]+strings.ToLower(verb[1:]), resource)
		r.Keys[leadingKeys] = []string{unknownValue}
		if c.operation == "ExecuteTransaction" {
			r.Keys[enclosingOperation] = []string{c.operation}
		}
		all = append(all, r)
	}
	return all
}

// partiQL matches the verb, the table and the index of a PartiQL statement.
var partiQL = regexp.MustCompile(`(?is)^\s*(?:EXISTS\s*\(\s*)?(SELECT\b.*?\bFROM|INSERT\s+INTO|UPDATE|DELETE\s+FROM)\s+("[^"]+"|[\w-]+)(?:\."([^"]+)")?`)
