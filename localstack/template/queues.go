package template

import "time"

// Queue is a resource of type AWS::SQS::Queue. Its defaults are those of CloudFormation.
type Queue struct {
	LogicalID           string
	Name                string // QueueName, or the logical ID (plus .fifo for a FIFO queue) if there is none
	URL                 string // the result of !Ref for the queue
	FIFO                bool
	ContentDeduplicates bool          // ContentBasedDeduplication
	Visibility          time.Duration // default 30 s
	Delay               time.Duration // default 0
	Retention           time.Duration // default 4 days
	ReceiveWait         time.Duration // default 0: short polling
	MaxBytes            int           // 0 if not set
	DeadLetter          string        // ARN of the dead-letter queue; empty if there is none
	MaxReceives         int           // maxReceiveCount of the RedrivePolicy; 0 if there is none
}

func (r *reader) queue(logicalID string, resource *node) (Queue, error) {
	p := r.properties(logicalID, "", resource)
	q := Queue{LogicalID: logicalID}
	var err error
	if q.Name, err = r.physicalName(logicalID, resource); err != nil {
		return Queue{}, err
	}
	q.URL = r.queueURL(q.Name)
	for key, to := range map[string]*bool{"FifoQueue": &q.FIFO, "ContentBasedDeduplication": &q.ContentDeduplicates} {
		if *to, err = p.truth(key, false); err != nil {
			return Queue{}, err
		}
	}
	const day = 24 * 60 * 60
	for _, d := range []struct {
		key                   string
		to                    *time.Duration
		fallback, least, most int
	}{
		{"VisibilityTimeout", &q.Visibility, 30, 0, day / 2},
		{"DelaySeconds", &q.Delay, 0, 0, 900},
		{"MessageRetentionPeriod", &q.Retention, 4 * day, 60, 14 * day},
		{"ReceiveMessageWaitTimeSeconds", &q.ReceiveWait, 0, 0, 20},
	} {
		if *d.to, err = p.seconds(d.key, d.fallback, d.least, d.most); err != nil {
			return Queue{}, err
		}
	}
	if q.MaxBytes, err = p.number("MaximumMessageSize", 0, 1024, 1<<20); err != nil {
		return Queue{}, err
	}
	redrive, ok, err := p.inner("RedrivePolicy")
	if err != nil || !ok {
		return q, err
	}
	if q.DeadLetter, err = redrive.required("deadLetterTargetArn"); err != nil {
		return Queue{}, err
	}
	if _, ok := QueueName(q.DeadLetter); !ok {
		return Queue{}, errorAt(redrive.node.field("deadLetterTargetArn"), "%s: deadLetterTargetArn is %s, which is no queue's ARN; of a queue of this template it is !GetAtt QUEUE.Arn", redrive.owner, q.DeadLetter)
	}
	q.MaxReceives, err = redrive.number("maxReceiveCount", 10, 1, 1000)
	return q, err
}

// truth returns a boolean property, or fallback if the property is absent.
func (p properties) truth(key string, fallback bool) (bool, error) {
	value, err := p.get(key)
	if err != nil || value == nil {
		return fallback, err
	}
	if value.kind != scalar || value.text != "true" && value.text != "false" {
		return false, errorAt(value, "%s: %s must be true or false, got %s", p.owner, key, value.describe())
	}
	return value.text == "true", nil
}

// seconds returns a property in whole seconds, or fallback if the property is absent. All limits
// are in seconds.
func (p properties) seconds(key string, fallback, least, most int) (time.Duration, error) {
	n, err := p.number(key, fallback, least, most)
	return time.Duration(n) * time.Second, err
}
