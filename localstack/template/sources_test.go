package template_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/localstack/template"
)

const withSources = `
Resources:
  Consumer:
    Type: AWS::Serverless::Function
    Properties:
      Environment:
        Variables: {URL: !Ref Orders, NAME: !GetAtt Ledger.QueueName, SAME: !GetAtt Orders.QueueUrl}
      Events:
        Orders:
          Type: SQS
          Properties: {Queue: !GetAtt Orders.Arn}
        Ledger:
          Type: SQS
          Properties:
            Queue: !GetAtt Ledger.Arn
            BatchSize: 5
            MaximumBatchingWindowInSeconds: 2
            FunctionResponseTypes: [ReportBatchItemFailures]
            ScalingConfig: {MaximumConcurrency: 4}
        Payments:
          Type: DynamoDB
          Properties: {Stream: !GetAtt Payments.StreamArn, StartingPosition: LATEST}
        All:
          Type: DynamoDB
          Properties:
            Stream: !GetAtt Payments.StreamArn
            StartingPosition: TRIM_HORIZON
            BatchSize: 20
            BisectBatchOnFunctionError: true
            MaximumRetryAttempts: 7
            MaximumRecordAgeInSeconds: 3600
            ParallelizationFactor: 2
            FunctionResponseTypes: [ReportBatchItemFailures]
            DestinationConfig: {OnFailure: {Type: SQS, Destination: !GetAtt Dead.Arn}}
        Foreign:
          Type: SQS
          Properties: {Queue: !ImportValue theirs}
        Clock:
          Type: Schedule
          Properties: {Schedule: rate(1 minute)}
  Orders:
    Type: AWS::SQS::Queue
  Ledger:
    Type: AWS::SQS::Queue
    Properties:
      FifoQueue: true
      ContentBasedDeduplication: true
      VisibilityTimeout: 60
      DelaySeconds: 1
      MessageRetentionPeriod: 1209600
      ReceiveMessageWaitTimeSeconds: 20
      MaximumMessageSize: 4096
      RedrivePolicy: {deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 5}
  Dead:
    Type: AWS::SQS::Queue
    Properties: {QueueName: !Sub "${AWS::StackName}-dead.fifo", FifoQueue: true}
  Payments:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
      StreamSpecification: {StreamViewType: NEW_IMAGE}
`

func TestD1_ReadsQueuesAndEventSourceMappings(t *testing.T) {
	got, err := template.Parse("t.yaml", []byte(withSources), template.Options{Region: "eu-west-1", StackName: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	const head, stream = "arn:aws:sqs:eu-west-1:000000000000:", "arn:aws:dynamodb:eu-west-1:000000000000:table/Payments/stream/local"
	const day = 24 * time.Hour
	want := []template.Queue{
		{LogicalID: "Orders", Name: "Orders", URL: "https://sqs.eu-west-1.amazonaws.com/000000000000/Orders", Visibility: 30 * time.Second, Retention: 4 * day},
		{LogicalID: "Ledger", Name: "Ledger.fifo", URL: "https://sqs.eu-west-1.amazonaws.com/000000000000/Ledger.fifo", FIFO: true, ContentDeduplicates: true, Visibility: time.Minute, Delay: time.Second, Retention: 14 * day,
			ReceiveWait: 20 * time.Second, MaxBytes: 4096, DeadLetter: head + "shop-dead.fifo", MaxReceives: 5},
		{LogicalID: "Dead", Name: "shop-dead.fifo", URL: "https://sqs.eu-west-1.amazonaws.com/000000000000/shop-dead.fifo", FIFO: true, Visibility: 30 * time.Second, Retention: 4 * day},
	}
	if diff := cmp.Diff(want, got.Queues); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
	f := got.Functions[0]
	sources := []template.Source{
		{Name: "Orders", ARN: head + "Orders", BatchSize: 10, Retries: -1},
		{Name: "Ledger", ARN: head + "Ledger.fifo", BatchSize: 5, Window: 2 * time.Second, ReportsFailures: true, Concurrency: 4, Retries: -1},
		{Name: "Payments", ARN: stream, Table: "Payments", BatchSize: 100, Retries: -1},
		{Name: "All", ARN: stream, Table: "Payments", BatchSize: 20, FromStart: true, Bisects: true, Retries: 7, MaxAge: time.Hour, Concurrency: 2, ReportsFailures: true, OnFailure: head + "shop-dead.fifo"},
	}
	if diff := cmp.Diff(sources, f.Sources); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Foreign (SQS)", "Clock (Schedule)"}, f.OtherEvents); diff != "" {
		t.Errorf("other events (-want +got):\n%s", diff)
	}
	const url = "https://sqs.eu-west-1.amazonaws.com/000000000000/Orders"
	if diff := cmp.Diff(map[string]string{"URL": url, "SAME": url, "NAME": "Ledger.fifo"}, f.Environment); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if got.Tables[0].Stream != "NEW_IMAGE" {
		t.Errorf("the table is %+v", got.Tables[0])
	}
}

func TestD1_SourcesThatAreNotEmulatedAreNamed(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"provisioned":    {"{Queue: !GetAtt Orders.Arn}", "{Queue: !GetAtt Orders.Arn, ProvisionedPollerConfig: {MinimumPollers: 1}}", "Orders.Properties: ProvisionedPollerConfig is not emulated"},
		"disabled":       {"{Queue: !GetAtt Orders.Arn}", "{Queue: !GetAtt Orders.Arn, Enabled: false}", "Enabled: false is not emulated"},
		"no queue":       {"{Queue: !GetAtt Orders.Arn}", "{BatchSize: 1}", "Queue is missing"},
		"batch size":     {"BatchSize: 20", "BatchSize: 0", "BatchSize must be a whole number from 1"},
		"response types": {"[ReportBatchItemFailures]\n            ScalingConfig", "[Else]\n            ScalingConfig", "can have ReportBatchItemFailures, got Else"},
		"position":       {"StartingPosition: LATEST", "StartingPosition: AT_TIMESTAMP", "must be TRIM_HORIZON or LATEST"},
		"no position":    {", StartingPosition: LATEST", "", "StartingPosition is missing"},
		"no stream":      {"Stream: !GetAtt Payments.StreamArn, ", "Stream: !GetAtt Payments.Arn, ", "which is no table's StreamArn"},
		"truth":          {"BisectBatchOnFunctionError: true", "BisectBatchOnFunctionError: maybe", "must be true or false"},
		"redrive":        {"{deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 5}", "{maxReceiveCount: 5}", "deadLetterTargetArn is missing"},
		"dead letters":   {"{deadLetterTargetArn: !GetAtt Dead.Arn,", "{deadLetterTargetArn: !Ref Dead,", "which is no queue's ARN"},
		"receives":       {"maxReceiveCount: 5", "maxReceiveCount: 0", "maxReceiveCount must be a whole number from 1"},
		"visibility":     {"VisibilityTimeout: 60", "VisibilityTimeout: 43201", "from 0 to 43200"},
		"fifo":           {"FifoQueue: true\n      Content", "FifoQueue: perhaps\n      Content", "FifoQueue must be true or false"},
	} {
		text := strings.Replace(withSources, c.old, c.new, 1)
		if text == withSources {
			t.Fatalf("%s: nothing was replaced", name)
		}
		if _, err := template.Parse("t.yaml", []byte(text), template.Options{}); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "t.yaml:") {
			t.Errorf("%s: %v; want it to say %q", name, err, c.want)
		}
	}
}

// A wrong reference is an error with its position. It is not treated as a source that only AWS
// knows.
func TestSource_AWrongReferenceIsRefusedWithItsLine(t *testing.T) {
	for name, c := range map[string]struct{ event, want string }{
		"no such queue":       {"{Type: SQS, Properties: {Queue: !GetAtt Nope.Arn}}", "Nope is not a resource"},
		"no such attribute":   {"{Type: SQS, Properties: {Queue: !GetAtt Q.ARN}}", "attribute ARN of Q"},
		"its URL":             {"{Type: SQS, Properties: {Queue: !Ref Q}}", "it is !GetAtt QUEUE.Arn"},
		"a missing parameter": {"{Type: SQS, Properties: {Queue: !Ref QueueArn}}", "QueueArn"},
		"an unknown text":     {`{Type: SQS, Properties: {Queue: !Sub "arn:aws:sqs:${AWS::Region}:1:${Qx}"}}`, "Qx"},
		"no such table":       {"{Type: DynamoDB, Properties: {Stream: !GetAtt Tabel.StreamArn, StartingPosition: LATEST}}", "Tabel is not a resource"},
	} {
		text := `
Parameters: {QueueArn: {Type: String}}
Resources:
  Q: {Type: AWS::SQS::Queue}
  F:
    Type: AWS::Serverless::Function
    Properties:
      Events:
        E: ` + c.event
		_, err := template.Parse("t.yaml", []byte(text), template.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "t.yaml:9:") {
			t.Errorf("%s: %v; want an error at line 9 with %q", name, err, c.want)
		}
	}
}

func TestSource_AMappingOfItsOwnIsRefused(t *testing.T) {
	_, err := template.Parse("t.yaml", []byte("Resources: {M: {Type: AWS::Lambda::EventSourceMapping}}"), template.Options{})
	if err == nil || !strings.Contains(err.Error(), "an event of the function") {
		t.Errorf("%v; want what to write instead", err)
	}
}

// Rename changes a name everywhere: in the resource, in ARNs and in URLs.
func TestRename_EverywhereAtOnce(t *testing.T) {
	sam, err := template.Parse("t.yaml", []byte(`
Resources:
  Orders: {Type: AWS::SQS::Queue, Properties: {QueueName: orders, RedrivePolicy: {deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 3}}}
  Dead: {Type: AWS::SQS::Queue}
  Dev: {Type: AWS::DynamoDB::Table, Properties: {TableName: dev, KeySchema: [{AttributeName: id, KeyType: HASH}], AttributeDefinitions: [{AttributeName: id, AttributeType: S}], StreamSpecification: {StreamViewType: NEW_IMAGE}}}
  F:
    Type: AWS::Serverless::Function
    Properties:
      Environment:
        Variables: {STAGE: dev, TABLE: !Ref Dev, TABLE_ARN: !GetAtt Dev.Arn, NAMES: !Sub "${Orders},${Orders.QueueName}", ARN: !GetAtt Orders.Arn}
      Events:
        Q: {Type: SQS, Properties: {Queue: !GetAtt Orders.Arn}}
        S: {Type: DynamoDB, Properties: {Stream: !GetAtt Dev.StreamArn, StartingPosition: LATEST, DestinationConfig: {OnFailure: {Destination: !GetAtt Dead.Arn}}}}
`), template.Options{Rename: func(kind, name string) string { return "my-" + name + kind[len(kind)-1:] }})
	if err != nil {
		t.Fatal(err)
	}
	f := sam.Functions[0]
	want := map[string]string{
		"STAGE": "dev", "TABLE": "my-deve", "TABLE_ARN": "arn:aws:dynamodb:us-east-1:000000000000:table/my-deve",
		"NAMES": "https://sqs.us-east-1.amazonaws.com/000000000000/my-orderse,my-orderse", "ARN": "arn:aws:sqs:us-east-1:000000000000:my-orderse",
	}
	if diff := cmp.Diff(want, f.Environment); diff != "" {
		t.Errorf("the environment (-want +got):\n%s", diff)
	}
	got := []string{sam.Queues[0].Name, sam.Queues[0].DeadLetter, sam.Queues[1].Name, sam.Tables[0].Name, f.Sources[0].ARN, f.Sources[1].Table, f.Sources[1].OnFailure}
	if diff := cmp.Diff([]string{"my-orderse", "arn:aws:sqs:us-east-1:000000000000:my-Deade", "my-Deade", "my-deve",
		"arn:aws:sqs:us-east-1:000000000000:my-orderse", "my-deve", "arn:aws:sqs:us-east-1:000000000000:my-Deade"}, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

// A filter is only a warning: without it, the function receives more messages than on AWS.
func TestSource_AFilterIsAWarning(t *testing.T) {
	sam, err := template.Parse("t.yaml", []byte(`
Resources:
  Orders: {Type: AWS::SQS::Queue}
  F:
    Type: AWS::Serverless::Function
    Properties:
      Events:
        Q: {Type: SQS, Properties: {Queue: !GetAtt Orders.Arn, FilterCriteria: {Filters: [{Pattern: "{}"}]}}}
`), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(sam.Warnings) != 1 || !strings.HasPrefix(sam.Warnings[0], "t.yaml:8:") || !strings.Contains(sam.Warnings[0], "FilterCriteria is not emulated in a local run: the function gets every message") {
		t.Errorf("the warnings are %q", sam.Warnings)
	}
	if len(sam.Functions[0].Sources) != 1 {
		t.Errorf("the sources are %+v", sam.Functions[0].Sources)
	}
}

// Rename does not change the logical ID by which a function's event refers to its API.
func TestRename_LeavesAPIsAlone(t *testing.T) {
	for event, api := range map[string]string{"{Type: HttpApi, Properties: {ApiId: !Ref Shop, Method: post, Path: /a}}": "AWS::Serverless::HttpApi",
		"{Type: Api, Properties: {RestApiId: !Ref Shop, Method: post, Path: /a}}": "AWS::Serverless::Api"} {
		text := "Resources:\n  Shop: {Type: " + api + ", Properties: {StageName: dev}}\n  F: {Type: AWS::Serverless::Function, Properties: {Events: {A: " + event + "}}}\n"
		sam, err := template.Parse("t.yaml", []byte(text), template.Options{Rename: func(_, name string) string { return "my-" + name }})
		if err != nil {
			t.Errorf("%s: %v", api, err)
			continue
		}
		if f := sam.Functions[0]; f.Name != "my-F" || f.Routes[0].API != "Shop" {
			t.Errorf("%s: the function is %s, its route's API %s", api, f.Name, f.Routes[0].API)
		}
	}
}

func TestQueueName(t *testing.T) {
	for text, want := range map[string]string{
		"arn:aws:sqs:us-east-1:123456789012:orders":      "orders",
		"arn:aws-cn:sqs:cn-north-1:123456789012:a.fifo":  "a.fifo",
		"arn:aws:sqs:us-east-1:123456789012:":            "",
		"arn:aws:sqs:us-east-1:123456789012:orders:more": "",
		"arn:aws:sns:us-east-1:123456789012:orders":      "",
		"arn:aws:sqs:us-east-1:orders":                   "",
		"urn:aws:sqs:us-east-1:123456789012:orders":      "",
		"http://127.0.0.1:4566/123456789012/orders":      "",
		"": "",
	} {
		if got, ok := template.QueueName(text); got != want || ok != (want != "") {
			t.Errorf("QueueName(%q) = %q, %v; want %q", text, got, ok, want)
		}
	}
}

// Other event sources are not an error. They are listed in OtherEvents, so that the emulator can
// report that it does not emulate them.
func TestSources_OthersAreNamed(t *testing.T) {
	var events strings.Builder
	var want []string
	for _, kind := range []string{"MSK", "SelfManagedKafka", "S3", "MQ", "DocumentDB", "SNS", "Kinesis"} {
		fmt.Fprintf(&events, "        %sEvent: {Type: %[1]s, Properties: {Stream: arn:of:the:source, Topics: [orders]}}\n", kind)
		want = append(want, kind+"Event ("+kind+")")
	}
	got, err := template.Parse("t.yaml", []byte(`
Transform: AWS::Serverless-2016-10-31
Resources:
  Consumer:
    Type: AWS::Serverless::Function
    Properties:
      Handler: bootstrap
      Runtime: provided.al2023
      Events:
`+events.String()), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Functions[0].OtherEvents); diff != "" || len(got.Functions[0].Sources) > 0 {
		t.Errorf("other events (-want +got):\n%s", diff)
	}
}
