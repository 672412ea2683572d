package template_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// roleOf returns the role of the function F in a template with a table T, a queue Q and a bucket B.
func roleOf(t *testing.T, properties, resources string) template.Role {
	t.Helper()
	sam, err := template.Parse("t.yaml", []byte(`Parameters:
  Given: {Type: String}
Conditions:
  Never: !Equals [a, b]
  Maybe: !Equals [a, !Ref Given]
Resources:
  F: {Type: AWS::Serverless::Function, Properties: {`+properties+`}}
  T: {Type: AWS::DynamoDB::Table, Properties: {TableName: orders, KeySchema: [{AttributeName: id, KeyType: HASH}]}}
  Q: {Type: AWS::SQS::Queue}
  B: {Type: AWS::S3::Bucket}
`+resources), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return sam.Function("F").Role
}

const (
	tableARN = "arn:aws:dynamodb:us-east-1:000000000000:table/orders"
	queueARN = "arn:aws:sqs:us-east-1:000000000000:Q"
	logs     = "AWSLambdaBasicExecutionRole Allow logs:CreateLogGroup,logs:CreateLogStream,logs:PutLogEvents on *"
)

// allowances returns a line for each statement.
func allowances(r template.Role) []string {
	var all []string
	for _, s := range r.Statements {
		text := strings.TrimSpace(s.Policy + " " + s.Effect + " " + strings.Join(s.Actions, ","))
		if len(s.NotActions) > 0 {
			text += " all but " + strings.Join(s.NotActions, ",")
		}
		text += " on " + strings.Join(s.Resources, ",")
		if len(s.NotResources) > 0 {
			text += "all but " + strings.Join(s.NotResources, ",")
		}
		for _, c := range s.Conditions {
			text += fmt.Sprintf(" if %s %s %s", c.Operator, c.Key, strings.Join(c.Values, ","))
		}
		if s.Unknown != "" {
			text += " and what only AWS knows"
		}
		all = append(all, text)
	}
	return all
}

func TestRole(t *testing.T) {
	const (
		own     = "Role: !GetAtt R.Arn"
		role    = "  R: {Type: AWS::IAM::Role, Properties: {"
		inline  = "Policies: [{PolicyName: p, PolicyDocument: {Statement: [{Effect: Allow, Action: dynamodb:GetItem, Resource: !GetAtt T.Arn}]}}]"
		granted = "p Allow dynamodb:GetItem on " + tableARN
	)
	for name, test := range map[string]struct {
		properties, resources string
		role                  string // default: FRole
		want                  []string
		unknown               string // a part of Unknown
	}{
		"none":               {"", "", "", []string{logs}, ""},
		"a statement of SAM": {"Policies: {Statement: {Effect: Deny, NotAction: [a:b], NotResource: !GetAtt Q.Arn}}", "", "", []string{"Deny all but a:b on all but " + queueARN, logs}, ""},
		"a condition": {"Policies: [{Statement: [{Effect: Allow, Action: [dynamodb:*], Resource: '*', Condition: {'ForAllValues:StringLike': {dynamodb:LeadingKeys: [a, !Ref Q]}, Bool: {aws:SecureTransport: true}}}]}]", "", "",
			[]string{"Allow dynamodb:* on * if ForAllValues:StringLike dynamodb:LeadingKeys a,https://sqs.us-east-1.amazonaws.com/000000000000/Q if Bool aws:SecureTransport true", logs}, ""},
		"a policy template": {"Policies: [DynamoDBReadPolicy: {TableName: !Ref T}, SQSSendMessagePolicy: {QueueName: !GetAtt Q.QueueName}, S3ReadPolicy: {BucketName: !Ref B}]", "", "", []string{
			"DynamoDBReadPolicy Allow dynamodb:GetItem,dynamodb:Scan,dynamodb:Query,dynamodb:BatchGetItem,dynamodb:DescribeTable on " + tableARN + "," + tableARN + "/index/*",
			"SQSSendMessagePolicy Allow sqs:SendMessage* on " + queueARN, logs,
		}, ""},
		"an unknown policy template":  {"Policies: [DynamoDBCrudPolcy: {TableName: !Ref T}]", "", "", []string{logs}, "DynamoDBCrudPolcy"},
		"a policy template without":   {"Policies: [DynamoDBReconfigurePolicy: {}]", "", "", []string{"DynamoDBReconfigurePolicy Allow dynamodb:UpdateTable on  and what only AWS knows", logs}, ""},
		"a managed policy":            {"Policies: AmazonSQSFullAccess", "", "", []string{"AmazonSQSFullAccess Allow sqs:* on *", logs}, ""},
		"a managed policy by its ARN": {"Policies: [!Sub 'arn:${AWS::Partition}:iam::aws:policy/AdministratorAccess']", "", "", []string{"AdministratorAccess Allow * on *", logs}, ""},
		"a policy of the account":     {"Policies: ['arn:aws:iam::000000000000:policy/AdministratorAccess']", "", "", []string{logs}, "000000000000:policy/AdministratorAccess"},
		"an unknown managed policy":   {"Policies: [AmazonS3FullAccess]", "", "", []string{logs}, "AmazonS3FullAccess"},
		"a condition of the template": {"Policies: [!If [Never, AdministratorAccess, !Ref AWS::NoValue], !If [Never, a, AmazonSQSFullAccess]]", "", "", []string{"AmazonSQSFullAccess Allow sqs:* on *", logs}, ""},
		"a resource that is a bucket": {"Policies: [{Statement: [{Effect: Allow, Action: s3:*, Resource: [!GetAtt B.Arn, !Sub '${B.Arn}/*']}]}]", "", "", []string{"Allow s3:* on arn:aws:s3:::B,arn:aws:s3:::B", logs}, ""},
		"a resource of another stack": {"Policies: [{Statement: [{Effect: Allow, Action: dynamodb:*, Resource: [!ImportValue X, '*']}]}]", "", "", []string{"Allow dynamodb:* on * and what only AWS knows", logs}, ""},
		"an output of a nested stack": {"Policies: [{Statement: [{Effect: Allow, Action: dynamodb:*, Resource: !GetAtt N.Outputs.Table}]}]", "  N: {Type: AWS::CloudFormation::Stack}\n", "", []string{"Allow dynamodb:* on  and what only AWS knows", logs}, ""},
		"a parameter without value":   {"Policies: [{Statement: [{Effect: Allow, Action: dynamodb:*, Resource: !Ref Given}]}]", "", "", []string{"Allow dynamodb:* on  and what only AWS knows", logs}, ""},
		"conditions by a macro": {"Policies: [{Statement: [{Effect: Deny, Action: dynamodb:*, Resource: '*', Condition: {'Fn::Transform': {Name: AWS::Include}}}, {Effect: Allow, Action: sqs:*, Resource: '*', Condition: {Bool: {'Fn::Transform': {Name: AWS::Include}}}}]}]", "", "", []string{
			"Deny dynamodb:* on * if    and what only AWS knows", "Allow sqs:* on * if Bool   and what only AWS knows", logs,
		}, ""},
		"a whole policy by a macro":    {"Policies: [{Statement: {'Fn::Transform': {Name: AWS::Include}}}]", "", "", []string{logs}, "only by AWS"},
		"a queue as a source":          {"Events: {E: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn}}}", "", "", []string{logs, "AWSLambdaSQSQueueExecutionRole Allow logs:CreateLogGroup,logs:CreateLogStream,logs:PutLogEvents on *", "AWSLambdaSQSQueueExecutionRole Allow sqs:ReceiveMessage,sqs:DeleteMessage,sqs:GetQueueAttributes on *"}, ""},
		"a stream as a source":         {"Events: {E: {Type: DynamoDB, Properties: {Stream: !GetAtt T.StreamArn, StartingPosition: LATEST, DestinationConfig: {OnFailure: {Type: SQS, Destination: !GetAtt Q.Arn}}}}}", "", "", []string{logs, "AWSLambdaDynamoDBExecutionRole Allow logs:CreateLogGroup,logs:CreateLogStream,logs:PutLogEvents on *", "AWSLambdaDynamoDBExecutionRole Allow dynamodb:DescribeStream,dynamodb:GetRecords,dynamodb:GetShardIterator,dynamodb:ListStreams on *", "Allow sqs:SendMessage on " + queueARN}, ""},
		"a destination without a type": {"Events: {E: {Type: DynamoDB, Properties: {Stream: !GetAtt T.StreamArn, StartingPosition: LATEST, DestinationConfig: {OnFailure: {Destination: !GetAtt Q.Arn}}}}}", "", "", []string{logs, "AWSLambdaDynamoDBExecutionRole Allow logs:CreateLogGroup,logs:CreateLogStream,logs:PutLogEvents on *", "AWSLambdaDynamoDBExecutionRole Allow dynamodb:DescribeStream,dynamodb:GetRecords,dynamodb:GetShardIterator,dynamodb:ListStreams on *"}, ""},
		"a dead-letter queue":          {"DeadLetterQueue: {Type: SQS, TargetArn: !GetAtt Q.Arn}", "", "", []string{logs, "Allow sqs:SendMessage on " + queueARN}, ""},
		"a connector":                  {"", "  C: {Type: AWS::Serverless::Connector, Properties: {Source: {Id: F}, Destination: {Id: T}, Permissions: [Read]}}\n", "", []string{logs}, "connectors"},

		"a role":                           {own, role + inline + "}}\n", "R", []string{granted}, ""},
		"a role with a name":               {own, role + "RoleName: payer, " + inline + "}}\n", "payer", []string{granted}, ""},
		"a role with managed policies":     {own, role + "ManagedPolicyArns: ['arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole']}}\n", "R", []string{logs}, ""},
		"a role with a managed policy":     {own, role + "ManagedPolicyArns: [!Ref M]}}\n  M: {Type: AWS::IAM::ManagedPolicy, Properties: {PolicyDocument: {Statement: {Effect: Allow, Action: 'sqs:*', Resource: '*'}}}}\n", "R", []string{"M Allow sqs:* on *"}, ""},
		"a policy with roles":              {own, role + "}}\n  P: {Type: AWS::IAM::Policy, Properties: {Roles: [!Ref R], PolicyDocument: {Statement: {Effect: Allow, Action: 'sqs:*', Resource: '*'}}}}\n", "R", []string{"P Allow sqs:* on *"}, ""},
		"a policy of a role":               {own, role + "}}\n  P: {Type: AWS::IAM::RolePolicy, Properties: {RoleName: !Ref R, PolicyDocument: {Statement: {Effect: Allow, Action: 'sqs:*', Resource: '*'}}}}\n", "R", []string{"P Allow sqs:* on *"}, ""},
		"a policy that does not exist":     {own, role + "}}\n  P: {Type: AWS::IAM::Policy, Condition: Never, Properties: {Roles: [!Ref R], PolicyDocument: {Statement: {Effect: Allow, Action: 'sqs:*', Resource: '*'}}}}\n", "R", nil, ""},
		"a policy of another role":         {own, role + "}}\n  P: {Type: AWS::IAM::Policy, Properties: {Roles: [other], PolicyDocument: {Statement: {Effect: Allow, Action: 'sqs:*', Resource: '*'}}}}\n", "R", nil, ""},
		"a role of another stack":          {"Role: !ImportValue X", "", "", nil, "ImportValue"},
		"a role of the account":            {"Role: 'arn:aws:iam::000000000000:role/path/payer'", "", "payer", nil, "is not a resource of this template"},
		"a role beside one without a name": {own, role + inline + "}}\n  A: {Type: AWS::IAM::Role, Properties: {RoleName: !Ref Given}}\n", "R", []string{granted}, ""},
		"a condition without its value":    {"Policies: [!If [Maybe, AdministratorAccess, !Ref AWS::NoValue]]", "", "", []string{logs}, "parameter Given"},
		"a role beside Policies":           {own + ", Policies: AdministratorAccess", role + "}}\n", "R", nil, ""},
		"a role that a condition takes":    {"Role: !If [Never, x, !Ref AWS::NoValue]", "", "", []string{logs}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := roleOf(t, test.properties, test.resources)
			if want := allowances(got); !slices.Equal(want, test.want) {
				t.Errorf("the statements are\n%s\nwant\n%s", strings.Join(want, "\n"), strings.Join(test.want, "\n"))
			}
			if test.role == "" {
				test.role = "FRole"
			}
			if got.Name != test.role || !strings.HasPrefix(got.ARN, "arn:aws:iam::000000000000:role/") || !strings.HasSuffix(got.ARN, test.role) {
				t.Errorf("the role is %s, %s; want %s", got.Name, got.ARN, test.role)
			}
			if unknown := strings.Join(got.Unknown, "\n"); (unknown == "") != (test.unknown == "") || !strings.Contains(unknown, test.unknown) {
				t.Errorf("unknown is %q; want %q in it", unknown, test.unknown)
			}
		})
	}
}

// A permissions boundary only limits a role, so a local run ignores it and says so.
func TestRole_BoundaryIsAWarning(t *testing.T) {
	sam, err := template.Parse("t.yaml", []byte("Resources:\n  F:\n    Type: AWS::Serverless::Function\n    Properties:\n      PermissionsBoundary: arn:aws:iam::aws:policy/ReadOnlyAccess\n"), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(sam.Warnings) != 1 || !strings.HasPrefix(sam.Warnings[0], "t.yaml:5:28: F: PermissionsBoundary is ignored") {
		t.Errorf("the warnings are %q", sam.Warnings)
	}
}

// The warning about a role's boundary is given once, even if several functions have the role.
func TestRole_BoundaryOfASharedRoleIsOneWarning(t *testing.T) {
	sam, err := template.Parse("t.yaml", []byte(`Resources:
  F: {Type: AWS::Serverless::Function, Properties: {Role: !GetAtt R.Arn}}
  G: {Type: AWS::Serverless::Function, Properties: {Role: !GetAtt R.Arn}}
  R: {Type: AWS::IAM::Role, Properties: {PermissionsBoundary: arn:aws:iam::aws:policy/ReadOnlyAccess}}
`), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(sam.Warnings) != 1 || !strings.HasPrefix(sam.Warnings[0], "t.yaml:4:63: R: PermissionsBoundary is ignored") {
		t.Errorf("the warnings are %q", sam.Warnings)
	}
}

// The position of a statement is that of its line in the template.
func TestRole_StatementsHaveTheirPlace(t *testing.T) {
	sam, err := template.Read("../../template.yaml", template.Options{Parameters: map[string]string{"JwtIssuer": "https://i.example.com", "JwtAudience": "a"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range sam.Functions {
		if len(f.Role.Statements) < 2 || len(f.Role.Unknown) > 0 || f.Role.Name != strings.TrimSuffix(f.Name, "Function")+"Role" {
			t.Errorf("%s has the role %+v", f.Name, f.Role)
		}
		for _, s := range f.Role.Statements {
			if !strings.HasPrefix(s.At, "../../template.yaml:") {
				t.Errorf("a statement of %s is at %s", f.Name, s.At)
			}
		}
	}
}
