package template

import (
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/arn"
)

// Source is an event source mapping: an event of type SQS or DynamoDB of a function. Its defaults
// are those of Lambda ("AWS::Lambda::EventSourceMapping").
type Source struct {
	Name            string
	ARN             string        // ARN of the queue, or ARN of the stream in the template
	Table           string        // name of the stream's table; empty for a queue
	BatchSize       int           // default 10 for a queue, 100 for a stream
	Window          time.Duration // MaximumBatchingWindowInSeconds, default 0
	ReportsFailures bool          // FunctionResponseTypes has ReportBatchItemFailures
	Concurrency     int           // MaximumConcurrency of a queue, ParallelizationFactor of a stream; 0 if not set

	// The other fields are used only for a stream.
	FromStart bool          // StartingPosition is TRIM_HORIZON, not LATEST
	Bisects   bool          // BisectBatchOnFunctionError
	Retries   int           // MaximumRetryAttempts; -1, the default, means no limit
	MaxAge    time.Duration // MaximumRecordAgeInSeconds; 0, the default, means no limit
	OnFailure string        // ARN of the OnFailure destination; empty if there is none
}

// Kind returns the event's type in a template: SQS or DynamoDB.
func (s Source) Kind() string {
	if s.Table != "" {
		return "DynamoDB"
	}
	return "SQS"
}

// TableOfStream returns the name of the table in a stream's ARN, or "" if arn is not the ARN of a
// stream.
func TableOfStream(arn string) string {
	_, after, ok := strings.Cut(arn, ":table/")
	name, _, stream := strings.Cut(after, "/stream/")
	if !ok || !stream {
		return ""
	}
	return name
}

// QueueName returns the name in a queue's ARN, arn:PARTITION:sqs:REGION:ACCOUNT:NAME.
// It reports false for any other text.
func QueueName(text string) (name string, ok bool) {
	queue, err := arn.Parse(text)
	if err != nil || queue.Service != "sqs" || queue.Resource == "" || strings.Contains(queue.Resource, ":") {
		return "", false
	}
	return queue.Resource, true
}

// queueSource returns the source of an event of type SQS.
func (p properties) queueSource(name string) (Source, error) {
	s := Source{Name: name, Retries: -1}
	var err error
	if s.ARN, err = p.required("Queue"); err != nil {
		return Source{}, err
	}
	if _, ok := QueueName(s.ARN); !ok {
		return Source{}, errorAt(p.node.field("Queue"), "%s: Queue is %s, which is no queue's ARN; of a queue of this template it is !GetAtt QUEUE.Arn", p.owner, s.ARN)
	}
	scaling, _, err := p.inner("ScalingConfig")
	if err != nil {
		return Source{}, err
	}
	if s.Concurrency, err = scaling.number("MaximumConcurrency", 0, 2, 1000); err != nil {
		return Source{}, err
	}
	return s, p.common(&s, 10)
}

// streamSource returns the source of an event of type DynamoDB.
func (p properties) streamSource(name string) (Source, error) {
	s := Source{Name: name}
	var err error
	if s.ARN, err = p.required("Stream"); err != nil {
		return Source{}, err
	}
	if s.Table = TableOfStream(s.ARN); s.Table == "" {
		return Source{}, errorAt(p.node.field("Stream"), "%s: Stream is %s, which is no table's StreamArn", p.owner, s.ARN)
	}
	position, err := p.required("StartingPosition")
	if err != nil {
		return Source{}, err
	}
	switch position {
	case "TRIM_HORIZON", "LATEST":
		s.FromStart = position == "TRIM_HORIZON"
	default:
		return Source{}, errorAt(p.node.field("StartingPosition"), "%s: StartingPosition must be TRIM_HORIZON or LATEST, got %s", p.owner, position)
	}
	if s.Bisects, err = p.truth("BisectBatchOnFunctionError", false); err != nil {
		return Source{}, err
	}
	if s.Retries, err = p.number("MaximumRetryAttempts", -1, -1, 10_000); err != nil {
		return Source{}, err
	}
	age, err := p.number("MaximumRecordAgeInSeconds", -1, -1, 604_800)
	if err != nil {
		return Source{}, err
	}
	s.MaxAge = time.Duration(max(age, 0)) * time.Second
	if s.Concurrency, err = p.number("ParallelizationFactor", 0, 1, 10); err != nil {
		return Source{}, err
	}
	destinations, _, err := p.inner("DestinationConfig")
	if err != nil {
		return Source{}, err
	}
	failed, _, err := destinations.inner("OnFailure")
	if err != nil {
		return Source{}, err
	}
	if s.OnFailure, err = failed.text("Destination", ""); err != nil {
		return Source{}, err
	}
	return s, p.common(&s, 100)
}

// notEmulated are properties that are refused, because a local run without them would behave
// differently.
var notEmulated = []string{"TumblingWindowInSeconds", "ProvisionedPollerConfig"}

// common reads the properties that queues and streams have in common.
func (p properties) common(s *Source, batchSize int) error {
	for _, key := range notEmulated {
		if n := p.node.field(key); n != nil {
			return errorAt(n, "%s: %s is not emulated in a local run", p.owner, key)
		}
	}
	if n := p.node.field("FilterCriteria"); n != nil {
		p.reader.warnings = append(p.reader.warnings, errorAt(n, "%s: FilterCriteria is not emulated in a local run: the function gets every message", p.owner).Error())
	}
	if enabled, err := p.truth("Enabled", true); err != nil || !enabled {
		if err == nil {
			err = errorAt(p.node.field("Enabled"), "%s: Enabled: false is not emulated in a local run; leave the event out", p.owner)
		}
		return err
	}
	var err error
	if s.BatchSize, err = p.number("BatchSize", batchSize, 1, 10_000); err != nil {
		return err
	}
	if s.Window, err = p.seconds("MaximumBatchingWindowInSeconds", 0, 0, 300); err != nil {
		return err
	}
	types, err := p.texts("FunctionResponseTypes")
	for _, kind := range types {
		if kind != "ReportBatchItemFailures" {
			return errorAt(p.node.field("FunctionResponseTypes"), "%s: FunctionResponseTypes can have ReportBatchItemFailures, got %s", p.owner, kind)
		}
		s.ReportsFailures = true
	}
	return err
}
