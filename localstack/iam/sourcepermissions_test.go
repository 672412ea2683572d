package iam_test

import (
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/iam"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// Lambda reads queues and streams with the role of the function. A missing permission is an error,
// and the permissions that Lambda needs count as used.
func TestCheckSources(t *testing.T) {
	queue := template.Source{Name: "Mail", ARN: mails}
	table := template.Source{Name: "Change", ARN: stream, Table: "Orders", OnFailure: mails}
	for name, test := range map[string]struct {
		statement string
		source    template.Source
		lacks     []string
	}{
		"a queue":                    {"{Effect: Allow, Action: ['sqs:ReceiveMessage', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes'], Resource: !GetAtt Mails.Arn}", queue, nil},
		"a queue without deletion":   {"{Effect: Allow, Action: ['sqs:ReceiveMessage', 'sqs:GetQueueAttributes'], Resource: !GetAtt Mails.Arn}", queue, []string{"Shop/Mail needs sqs:DeleteMessage on " + mails, "ShopRole"}},
		"a stream":                   {"{Effect: Allow, Action: ['dynamodb:*', 'sqs:SendMessage'], Resource: [!GetAtt Orders.StreamArn, !GetAtt Mails.Arn]}", table, nil},
		"a stream by wildcard":       {"{Effect: Allow, Action: ['dynamodb:*', 'sqs:SendMessage'], Resource: [!Sub '${Orders.Arn}/stream/*', !GetAtt Mails.Arn]}", table, nil},
		"a stream for its table":     {"{Effect: Allow, Action: ['dynamodb:*', 'sqs:*'], Resource: [!GetAtt Orders.Arn, !GetAtt Mails.Arn]}", table, []string{"dynamodb:GetRecords on " + stream, "dynamodb:ListStreams"}},
		"a stream without its queue": {"{Effect: Allow, Action: 'dynamodb:*', Resource: '*'}", table, []string{"Shop/Change needs sqs:SendMessage on " + mails}},
	} {
		t.Run(name, func(t *testing.T) {
			sam := shop(t, test.statement)
			sam.Functions[0].Sources = []template.Source{test.source}
			checker, err := iam.New(sam)
			if err != nil {
				t.Fatal(err)
			}
			if err = checker.CheckSources(); (err != nil) != (test.lacks != nil) {
				t.Fatalf("CheckSources = %v", err)
			}
			for _, want := range test.lacks {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("CheckSources = %v; want %q in it", err, want)
				}
			}
			for _, p := range checker.Permissions() {
				if test.lacks == nil && !p.Elsewhere && p.Used == 0 {
					t.Errorf("%s counts as not used", p.Action)
				}
			}
		})
	}
}
