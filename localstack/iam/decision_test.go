package iam_test

import (
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/iam"
)

const (
	allowed = ""
	implied = "because no identity-based policy allows the dynamodb:GetItem action"
	denied  = "with an explicit deny in an identity-based policy"
)

func TestDecide(t *testing.T) {
	const (
		get     = "{Effect: Allow, Action: 'dynamodb:GetItem', Resource: !GetAtt Orders.Arn}"
		leading = "{Effect: Allow, Action: 'dynamodb:GetItem', Resource: '*', Condition: "
	)
	alice := iam.Keys{"dynamodb:leadingkeys": {"alice"}}
	for name, test := range map[string]struct {
		statements []string
		keys       iam.Keys
		resource   string // default: orders
		want       string
	}{
		"nothing":                   {[]string{"{Effect: Allow, Action: 'sqs:*', Resource: '*'}"}, nil, "", implied},
		"the action and resource":   {[]string{get}, nil, "", allowed},
		"another case":              {[]string{"{Effect: Allow, Action: 'DynamoDB:getitem', Resource: '*'}"}, nil, "", allowed},
		"a wildcard":                {[]string{"{Effect: Allow, Action: 'dynamodb:Get*', Resource: '*'}"}, nil, "", allowed},
		"everything":                {[]string{"{Effect: Allow, Action: '*', Resource: '*'}"}, nil, "", allowed},
		"one character":             {[]string{"{Effect: Allow, Action: 'dynamodb:GetIte?', Resource: '*'}"}, nil, "", allowed},
		"one character too many":    {[]string{"{Effect: Allow, Action: 'dynamodb:GetItem?', Resource: '*'}"}, nil, "", implied},
		"another action":            {[]string{"{Effect: Allow, Action: ['dynamodb:PutItem', 'dynamodb:Query'], Resource: '*'}"}, nil, "", implied},
		"the second of two actions": {[]string{"{Effect: Allow, Action: ['dynamodb:PutItem', 'dynamodb:GetItem'], Resource: '*'}"}, nil, "", allowed},
		"another resource":          {[]string{get}, nil, orders + "2", implied},
		"an index of the resource":  {[]string{get}, nil, byUser, implied},
		"a resource by wildcard":    {[]string{"{Effect: Allow, Action: 'dynamodb:GetItem', Resource: 'arn:aws:dynamodb:*:*:table/Ord*'}"}, nil, "", allowed},
		"a resource in other case":  {[]string{"{Effect: Allow, Action: 'dynamodb:GetItem', Resource: 'arn:aws:dynamodb:*:*:table/orders'}"}, nil, "", implied},
		"a deny":                    {[]string{get, "{Effect: Deny, Action: 'dynamodb:*', Resource: '*'}"}, nil, "", denied},
		"a deny of something else":  {[]string{get, "{Effect: Deny, Action: 'dynamodb:PutItem', Resource: '*'}"}, nil, "", allowed},
		"a deny of another table":   {[]string{get, "{Effect: Deny, Action: 'dynamodb:*', NotResource: !GetAtt Orders.Arn}"}, nil, "", allowed},
		"all but this table":        {[]string{"{Effect: Allow, Action: 'dynamodb:*', NotResource: !GetAtt Orders.Arn}"}, nil, "", implied},
		"all but other actions":     {[]string{"{Effect: Allow, NotAction: 'dynamodb:Delete*', Resource: '*'}"}, nil, "", allowed},
		"all but this action":       {[]string{"{Effect: Allow, NotAction: ['dynamodb:Get*'], Resource: '*'}"}, nil, "", implied},

		"the leading key":               {[]string{leading + "{'ForAllValues:StringEquals': {'dynamodb:LeadingKeys': [alice, bob]}}}"}, alice, "", allowed},
		"another leading key":           {[]string{leading + "{'ForAllValues:StringEquals': {'dynamodb:LeadingKeys': bob}}}"}, alice, "", implied},
		"two leading keys, one allowed": {[]string{leading + "{'ForAllValues:StringEquals': {'dynamodb:LeadingKeys': alice}}}"}, iam.Keys{"dynamodb:leadingkeys": {"alice", "bob"}}, "", implied},
		"any of two leading keys":       {[]string{leading + "{'ForAnyValue:StringEquals': {'dynamodb:LeadingKeys': alice}}}"}, iam.Keys{"dynamodb:leadingkeys": {"bob", "alice"}}, "", allowed},
		"no leading key, for all":       {[]string{leading + "{'ForAllValues:StringEquals': {'dynamodb:LeadingKeys': alice}}}"}, nil, "", allowed},
		"no leading key, for any":       {[]string{leading + "{'ForAnyValue:StringEquals': {'dynamodb:LeadingKeys': alice}}}"}, nil, "", implied},
		"no leading key, but required":  {[]string{leading + "{'ForAllValues:StringEquals': {'dynamodb:LeadingKeys': alice}, 'Null': {'dynamodb:LeadingKeys': 'false'}}}"}, nil, "", implied},
		"a leading key by pattern":      {[]string{leading + "{'ForAllValues:StringLike': {'dynamodb:leadingkeys': 'al*'}}}"}, alice, "", allowed},
		"a leading key by a variable":   {[]string{leading + "{'ForAllValues:StringEquals': {'dynamodb:LeadingKeys': '${aws:PrincipalAccount}'}}}"}, iam.Keys{"dynamodb:leadingkeys": {"000000000000"}}, "", allowed},
		"a variable is no pattern":      {[]string{leading + "{'ForAllValues:StringLike': {'dynamodb:LeadingKeys': 'a${*}'}}}"}, alice, "", implied},
		"a default of a variable":       {[]string{leading + "{'ForAllValues:StringEquals': {'dynamodb:LeadingKeys': \"${dynamodb:Select, 'alice'}\"}}}"}, alice, "", allowed},
		"a variable that is absent":     {[]string{leading + "{'ForAllValues:StringEquals': {'dynamodb:LeadingKeys': '${dynamodb:Select}'}}}"}, alice, "", implied},

		"a value with a wildcard": {[]string{"{Effect: Allow, Action: 'dynamodb:*', Resource: 'arn:aws:dynamodb:*:*:table/${dynamodb:Select}'}"}, iam.Keys{"dynamodb:select": {"*"}}, "", implied},

		"another Region":             {[]string{leading + "{StringEquals: {'aws:RequestedRegion': eu-west-1}}}"}, nil, "", implied},
		"the Region":                 {[]string{leading + "{StringEquals: {'aws:RequestedRegion': [eu-west-1, us-east-1]}}}"}, nil, "", allowed},
		"not another Region":         {[]string{leading + "{StringNotEquals: {'aws:RequestedRegion': [eu-west-1, eu-west-2]}}}"}, nil, "", allowed},
		"not this Region":            {[]string{leading + "{StringNotEquals: {'aws:RequestedRegion': [eu-west-1, us-east-1]}}}"}, nil, "", implied},
		"without regard to case":     {[]string{leading + "{StringEqualsIgnoreCase: {'aws:RequestedRegion': US-East-1}}}"}, nil, "", allowed},
		"the role":                   {[]string{leading + "{ArnLike: {'aws:PrincipalArn': 'arn:aws:iam::*:role/Shop*'}}}"}, nil, "", allowed},
		"another role":               {[]string{leading + "{ArnNotEquals: {'aws:PrincipalArn': 'arn:aws:iam::000000000000:role/ShopRole'}}}"}, nil, "", implied},
		"TLS":                        {[]string{leading + "{Bool: {'aws:SecureTransport': 'true'}}}"}, nil, "", allowed},
		"no TLS":                     {[]string{leading + "{Bool: {'aws:SecureTransport': 'false'}}}"}, nil, "", implied},
		"an absent key":              {[]string{leading + "{StringEquals: {'dynamodb:Select': COUNT}}}"}, nil, "", implied},
		"an absent key, if exists":   {[]string{leading + "{StringEqualsIfExists: {'dynamodb:Select': COUNT}}}"}, nil, "", allowed},
		"an absent key, negated":     {[]string{leading + "{StringNotEquals: {'dynamodb:Select': COUNT}}}"}, nil, "", allowed},
		"a key that must be absent":  {[]string{leading + "{'Null': {'dynamodb:Select': true}}}"}, nil, "", allowed},
		"one of two conditions":      {[]string{leading + "{Bool: {'aws:SecureTransport': 'true'}, StringEquals: {'aws:RequestedRegion': eu-west-1}}}"}, nil, "", implied},
		"after a date":               {[]string{leading + "{DateGreaterThan: {'aws:CurrentTime': '2020-01-01T00:00:00Z'}}}"}, nil, "", allowed},
		"before a date":              {[]string{leading + "{DateLessThan: {'aws:CurrentTime': '2020-01-01'}}}"}, nil, "", implied},
		"a number":                   {[]string{leading + "{NumericGreaterThanEquals: {'aws:EpochTime': 1577836800}}}"}, nil, "", allowed},
		"a number that is too large": {[]string{leading + "{NumericLessThan: {'aws:EpochTime': 1577836800}}}"}, nil, "", implied},
	} {
		t.Run(name, func(t *testing.T) {
			resource := test.resource
			if resource == "" {
				resource = orders
			}
			d := newChecker(t, test.statements...).Decide("Shop", iam.Request{Action: "dynamodb:GetItem", Resource: resource, Keys: test.keys})
			want := test.want
			if want != allowed {
				want = "User: arn:aws:sts::000000000000:assumed-role/ShopRole/Shop is not authorized to perform: dynamodb:GetItem on resource: " + resource + " " + want
			}
			if d.Allowed != (test.want == allowed) || d.Message != want || d.Undecided != "" {
				t.Errorf("Decide = %+v; want the message %q", d, want)
			}
		})
	}
}

// A request passes if the decision depends on something that only AWS knows, and the decision
// says so. A request that a statement denies is refused all the same.
func TestDecide_WhatOnlyAWSKnowsPasses(t *testing.T) {
	const get = "{Effect: Allow, Action: 'dynamodb:GetItem', Resource: !GetAtt Orders.Arn}"
	for name, test := range map[string]struct {
		statements []string
		allowed    bool
		says       string // Undecided; empty if the policies decide
	}{
		"a condition":                            {[]string{"{Effect: Allow, Action: 'dynamodb:*', Resource: '*', Condition: {IpAddress: {'aws:SourceIp': 10.0.0.0/8}}}"}, true, "IpAddress aws:SourceIp"},
		"a condition that fails":                 {[]string{"{Effect: Allow, Action: 'dynamodb:*', Resource: '*', Condition: {IpAddress: {'aws:SourceIp': 10.0.0.0/8}, Bool: {'aws:SecureTransport': false}}}"}, false, ""},
		"a condition that fails first":           {[]string{"{Effect: Allow, Action: 'dynamodb:*', Resource: '*', Condition: {Bool: {'aws:SecureTransport': false}, IpAddress: {'aws:SourceIp': 10.0.0.0/8}}}"}, false, ""},
		"a condition for another resource":       {[]string{"{Effect: Allow, Action: 'dynamodb:*', Resource: !GetAtt Mails.Arn, Condition: {IpAddress: {'aws:SourceIp': 10.0.0.0/8}}}"}, false, ""},
		"a variable in a condition":              {[]string{"{Effect: Allow, Action: 'dynamodb:*', Resource: '*', Condition: {ArnEquals: {'aws:PrincipalArn': '${aws:PrincipalTag/arn}'}}}"}, true, "ArnEquals aws:PrincipalArn"},
		"a variable beside the value":            {[]string{"{Effect: Allow, Action: 'dynamodb:*', Resource: '*', Condition: {ArnEquals: {'aws:PrincipalArn': ['${aws:PrincipalTag/arn}', 'arn:aws:iam::000000000000:role/ShopRole']}}}"}, true, ""},
		"conditions of a deny, by a macro":       {[]string{get, "{Effect: Deny, Action: 'dynamodb:*', Resource: '*', Condition: {'Fn::Transform': {Name: AWS::Include}}}"}, true, "the conditions are !Transform"},
		"the keys of a condition, by a macro":    {[]string{"{Effect: Allow, Action: 'dynamodb:*', Resource: '*', Condition: {StringEquals: {'Fn::Transform': {Name: AWS::Include}}}}"}, true, "the conditions are !Transform"},
		"a condition of a deny":                  {[]string{get, "{Effect: Deny, Action: 'dynamodb:*', Resource: '*', Condition: {StringEquals: {'aws:PrincipalOrgID': o-1}}}"}, true, "aws:PrincipalOrgID"},
		"a variable":                             {[]string{"{Effect: Allow, Action: 'dynamodb:*', Resource: 'arn:aws:dynamodb:*:*:table/${aws:PrincipalTag/team}'}"}, true, "only AWS knows"},
		"a variable, and a condition that fails": {[]string{"{Effect: Allow, Action: 'dynamodb:*', Resource: 'arn:aws:dynamodb:*:*:table/${aws:PrincipalTag/team}', Condition: {Bool: {'aws:SecureTransport': false}}}"}, false, ""},
		"a resource":                             {[]string{"{Effect: Allow, Action: 'dynamodb:*', Resource: !ImportValue Table}"}, true, "ImportValue"},
		"a resource beside another":              {[]string{"{Effect: Allow, Action: 'dynamodb:*', Resource: [!ImportValue Table, !GetAtt Orders.Arn]}"}, true, ""},
		"a resource without the act":             {[]string{"{Effect: Allow, Action: 'dynamodb:PutItem', Resource: !ImportValue Table}"}, false, ""},
		"a topic is no table":                    {[]string{"{Effect: Allow, Action: ['dynamodb:*', 'sns:*'], Resource: [!GetAtt Topic.TopicArn, !Ref Topic]}"}, false, ""},
		"and a deny":                             {[]string{"{Effect: Allow, Action: 'dynamodb:*', Resource: !ImportValue Table}", "{Effect: Deny, Action: 'dynamodb:GetItem', Resource: '*'}"}, false, ""},
		"and an allow":                           {[]string{"{Effect: Allow, Action: 'dynamodb:*', Resource: !ImportValue Table}", get}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newChecker(t, test.statements...).Decide("Shop", iam.Request{Action: "dynamodb:GetItem", Resource: orders})
			if d.Allowed != test.allowed || (d.Undecided == "") != (test.says == "") || !strings.Contains(d.Undecided, test.says) {
				t.Errorf("Decide = %+v; want allowed %v, undecided %q", d, test.allowed, test.says)
			}
		})
	}
}

// Each operator for numbers and dates is tested with a smaller, an equal and a larger value.
func TestDecide_ComparesNumbersAndDates(t *testing.T) {
	for operator, test := range map[string]struct{ smaller, same, larger bool }{
		"Equals": {same: true}, "NotEquals": {smaller: true, larger: true},
		"LessThan": {smaller: true}, "LessThanEquals": {smaller: true, same: true},
		"GreaterThan": {larger: true}, "GreaterThanEquals": {same: true, larger: true},
	} {
		for kind, values := range map[string]struct{ smaller, same, larger, of string }{
			"Numeric": {"9", "10.0", "10.5", "10"},
			"Date":    {"2019-12-31T23:59Z", "1577836800", "2020-01-02", "2020-01-01T00:00:00Z"},
		} {
			checker := newChecker(t, "{Effect: Allow, Action: 'dynamodb:GetItem', Resource: '*', Condition: {"+kind+operator+": {'dynamodb:Select': '"+values.of+"'}}}")
			for value, want := range map[string]bool{values.smaller: test.smaller, values.same: test.same, values.larger: test.larger} {
				if d := checker.Decide("Shop", iam.Request{Action: "dynamodb:GetItem", Resource: orders, Keys: iam.Keys{"dynamodb:select": {value}}}); d.Allowed != want {
					t.Errorf("%s%s %s allows %s: %v; want %v", kind, operator, values.of, value, d.Allowed, want)
				}
			}
		}
	}
}

// The policies of a role of another stack are unknown, so only a Deny in the template refuses a
// request.
func TestDecide_RoleThatOnlyAWSKnowsPasses(t *testing.T) {
	sam := shop(t, "{Effect: Deny, Action: 'dynamodb:DeleteTable', Resource: '*'}")
	sam.Functions[0].Role.Unknown = []string{"its role is known only to AWS"}
	checker, err := iam.New(sam)
	if err != nil {
		t.Fatal(err)
	}
	if d := checker.Decide("Shop", iam.Request{Action: "dynamodb:GetItem", Resource: orders}); !d.Allowed || d.Undecided != "its role is known only to AWS" {
		t.Errorf("GetItem: %+v", d)
	}
	if d := checker.Decide("Shop", iam.Request{Action: "dynamodb:DeleteTable", Resource: orders}); d.Allowed {
		t.Errorf("DeleteTable: %+v", d)
	}
	if notes := checker.Notes(); len(notes) != 1 || !strings.HasPrefix(notes[0], "the permissions of Shop are not checked") {
		t.Errorf("the notes are %q", notes)
	}
}

// A policy that AWS would refuse, or that can't be understood, is an error with its place.
func TestNew_ErrorsHaveTheirPlace(t *testing.T) {
	for name, test := range map[string]struct{ statement, says string }{
		"an unknown operator":   {"{Effect: Allow, Action: 'dynamodb:*', Resource: '*', Condition: {StringSounds: {'aws:RequestedRegion': a}}}", "StringSounds is not known"},
		"no set operator":       {"{Effect: Allow, Action: 'dynamodb:*', Resource: '*', Condition: {StringEquals: {'dynamodb:LeadingKeys': a}}}", "needs ForAllValues:"},
		"a name for an ARN":     {"{Effect: Allow, Action: 'dynamodb:*', Resource: !Ref Orders}", `"Orders" is neither an ARN`},
		"a URL for an ARN":      {"{Effect: Allow, Action: 'sqs:*', Resource: !Ref Mails}", "is neither an ARN"},
		"no effect":             {"{Action: 'dynamodb:*', Resource: '*'}", `Effect is ""`},
		"an unknown effect":     {"{Effect: allow, Action: 'dynamodb:*', Resource: '*'}", `Effect is "allow"`},
		"no resource":           {"{Effect: Allow, Action: 'dynamodb:*'}", "either Resource or NotResource"},
		"two kinds of actions":  {"{Effect: Allow, Action: 'dynamodb:*', NotAction: 'sqs:*', Resource: '*'}", "either Action or NotAction"},
		"an action, misspelled": {"{Effect: Allow, Action: ['dynamodb:GetItem', 'dynamodb.PutItem'], Resource: '*'}", `"dynamodb.PutItem" is not of the form`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := iam.New(shop(t, test.statement))
			if err == nil || !strings.Contains(err.Error(), "template.yaml:8:15: ") || !strings.Contains(err.Error(), test.says) {
				t.Errorf("New = %v; want an error at template.yaml:8:15 that says %q", err, test.says)
			}
		})
	}
	if _, err := iam.New(shop(t, "{Effect: Allow, Action: 'sns:Publish', Resource: '*', Condition: {StringSounds: {'sns:Endpoint': a}}}")); err != nil {
		t.Errorf("New = %v; no request here depends on a statement about another service", err)
	}
}

// Notes has a line for each statement about DynamoDB or SQS that only AWS can decide.
func TestNotes(t *testing.T) {
	checker := newChecker(t,
		"{Effect: Allow, Action: 'sqs:*', Resource: !ImportValue Queue}",
		"{Effect: Allow, Action: 'dynamodb:*', Resource: '*', Condition: {StringEquals: {'aws:PrincipalOrgID': o-1}}}",
		"{Effect: Allow, Action: 's3:*', Resource: !ImportValue Bucket}",
	)
	notes := strings.Join(checker.Notes(), "\n")
	if strings.Count(notes, "\n") != 1 || !strings.Contains(notes, "template.yaml:8:15: ") || !strings.Contains(notes, "template.yaml:9:15: ") ||
		!strings.Contains(notes, "StringEquals aws:PrincipalOrgID of Shop is not checked") {
		t.Errorf("the notes are %s", notes)
	}
}

// If a macro makes the conditions of a statement, only AWS knows their keys, so the note names no
// key.
func TestNotes_ConditionsByAMacro(t *testing.T) {
	notes := newChecker(t, "{Effect: Deny, Action: 'sqs:*', Resource: '*', Condition: {'Fn::Transform': {Name: AWS::Include}}}").Notes()
	if want := "template.yaml:8:15: this statement of Shop has a value that only AWS knows: the conditions are !Transform"; len(notes) != 1 || notes[0] != want {
		t.Errorf("the notes are %q; want %q", notes, want)
	}
}
