package queue

import (
	"net/url"
	"slices"
	"strings"
)

// none is the result of an action that has none.
type none = *struct{}

// queue finds the queue of a QueueUrl. Its host may be any: one server has many
// names.
func (c *call) queue(queueURL string) (*Queue, error) {
	if queueURL == "" {
		return nil, missing("QueueUrl")
	}
	parsed, err := url.Parse(queueURL)
	if err != nil || strings.Count(parsed.Path, "/") < 2 {
		return nil, invalidAddress.error("The address %s is not valid for this endpoint.", queueURL)
	}
	parts := strings.Split(parsed.Path, "/")
	account, name := parts[len(parts)-2], parts[len(parts)-1]
	if account != c.options.AccountID {
		return nil, noSuchQueue()
	}
	return c.named(name)
}

func (c *call) named(name string) (*Queue, error) {
	if strings.ContainsAny(name, ":/") {
		return nil, noSuchQueue() // Service.Queue takes ARNs and URLs too
	}
	return c.Queue(name)
}

// arnQueue finds the queue of a parameter of the message move tasks.
func (c *call) arnQueue(arn, parameter string) (*Queue, error) {
	if arn == "" {
		return nil, missing(parameter)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.byARN(arn); q != nil {
		return q, nil
	}
	return nil, resourceNotFound.error("The resource that you specified for the %s parameter doesn't exist.", parameter)
}

type queueURL struct {
	QueueURL string `json:"QueueUrl"`
}

type createQueueRequest struct {
	QueueName  string
	Attributes map[string]string
}

func (c *call) createQueue(in *createQueueRequest) (*queueURL, error) {
	q, err := c.CreateQueue(in.QueueName, in.Attributes)
	if err != nil {
		return nil, err
	}
	return &queueURL{q.url(c.base)}, nil
}

type getQueueURLRequest struct {
	QueueName              string
	QueueOwnerAWSAccountID string `json:"QueueOwnerAWSAccountId"`
}

func (c *call) getQueueURL(in *getQueueURLRequest) (*queueURL, error) {
	if in.QueueName == "" {
		return nil, missing("QueueName")
	}
	if owner := in.QueueOwnerAWSAccountID; owner != "" && owner != c.options.AccountID {
		return nil, noSuchQueue()
	}
	q, err := c.named(in.QueueName)
	if err != nil {
		return nil, err
	}
	return &queueURL{q.url(c.base)}, nil
}

type listQueuesRequest struct {
	QueueNamePrefix string
	MaxResults      *int
	NextToken       string
}

type listQueuesResponse struct {
	QueueURLs []string `json:"QueueUrls,omitempty"`
	NextToken string   `json:",omitempty"`
}

// listQueues pages by name: the token is the last name that was returned.
func (c *call) listQueues(in *listQueuesRequest) (*listQueuesResponse, error) {
	most := 1000
	if in.MaxResults != nil {
		most = *in.MaxResults
		if most < 1 || most > 1000 {
			return nil, outOfRange(most, "MaxResults", 1, 1000)
		}
	}
	out := &listQueuesResponse{}
	var last string
	for _, q := range c.Queues() {
		if !strings.HasPrefix(q.name, in.QueueNamePrefix) || q.name <= in.NextToken {
			continue
		}
		if len(out.QueueURLs) == most {
			if in.MaxResults != nil {
				out.NextToken = last
			}
			break
		}
		out.QueueURLs, last = append(out.QueueURLs, q.url(c.base)), q.name
	}
	return out, nil
}

type getQueueAttributesRequest struct {
	QueueURL       string `json:"QueueUrl"`
	AttributeNames []string
}

type getQueueAttributesResponse struct {
	Attributes map[string]string `json:",omitempty"`
}

func (c *call) getQueueAttributes(in *getQueueAttributesRequest) (*getQueueAttributesResponse, error) {
	q, err := c.queue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	all, err := q.Attributes()
	if err != nil {
		return nil, err
	}
	out := &getQueueAttributesResponse{Attributes: map[string]string{}}
	for _, name := range in.AttributeNames {
		value, set := all[name]
		switch {
		case name == "All":
			return &getQueueAttributesResponse{Attributes: all}, nil
		case set:
			out.Attributes[name] = value
		case name != attrRedrive && !slices.Contains(kept, name):
			return nil, invalidAttributeName.error("Unknown Attribute %s.", name)
		}
	}
	return out, nil
}

type setQueueAttributesRequest struct {
	QueueURL   string `json:"QueueUrl"`
	Attributes map[string]string
}

func (c *call) setQueueAttributes(in *setQueueAttributesRequest) (none, error) {
	q, err := c.queue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	if len(in.Attributes) == 0 {
		return nil, missing("Attribute.Name")
	}
	return nil, q.SetAttributes(in.Attributes)
}

func (c *call) deleteQueue(in *queueURL) (none, error) {
	q, err := c.queue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	return nil, q.DeleteQueue()
}

func (c *call) purgeQueue(in *queueURL) (none, error) {
	q, err := c.queue(in.QueueURL)
	if err != nil {
		return nil, err
	}
	return nil, q.Purge()
}

type startMessageMoveTaskRequest struct {
	SourceARN                    string `json:"SourceArn"`
	DestinationARN               string `json:"DestinationArn"`
	MaxNumberOfMessagesPerSecond *int
}

type startMessageMoveTaskResponse struct {
	TaskHandle string
}

func (c *call) startMessageMoveTask(in *startMessageMoveTaskRequest) (*startMessageMoveTaskResponse, error) {
	if rate := in.MaxNumberOfMessagesPerSecond; rate != nil && (*rate < 1 || *rate > 500) {
		return nil, outOfRange(*rate, "MaxNumberOfMessagesPerSecond", 1, 500)
	}
	source, err := c.arnQueue(in.SourceARN, "SourceArn")
	if err != nil {
		return nil, err
	}
	var destination *Queue
	if in.DestinationARN != "" {
		if destination, err = c.arnQueue(in.DestinationARN, "DestinationArn"); err != nil {
			return nil, err
		}
	}
	task, err := source.Redrive(destination)
	if err != nil {
		return nil, err
	}
	return &startMessageMoveTaskResponse{task.Handle}, nil
}

type listMessageMoveTasksRequest struct {
	SourceARN  string `json:"SourceArn"`
	MaxResults *int
}

type listMessageMoveTasksResponse struct {
	Results []moveTaskEntry
}

type moveTaskEntry struct {
	SourceARN                         string `json:"SourceArn"`
	DestinationARN                    string `json:"DestinationArn,omitempty"`
	Status                            string
	FailureReason                     string `json:",omitempty"`
	StartedTimestamp                  int64
	ApproximateNumberOfMessagesMoved  int
	ApproximateNumberOfMessagesToMove int
}

// listMessageMoveTasks gives no task handles: those are of running tasks alone,
// and none is.
func (c *call) listMessageMoveTasks(in *listMessageMoveTasksRequest) (*listMessageMoveTasksResponse, error) {
	most := 1
	if in.MaxResults != nil {
		most = *in.MaxResults
	}
	if most < 1 || most > 10 {
		return nil, outOfRange(most, "MaxResults", 1, 10)
	}
	source, err := c.arnQueue(in.SourceARN, "SourceArn")
	if err != nil {
		return nil, err
	}
	out := &listMessageMoveTasksResponse{Results: []moveTaskEntry{}}
	for _, task := range source.MoveTasks() {
		if len(out.Results) == most {
			break
		}
		entry := moveTaskEntry{
			SourceARN: task.Source, DestinationARN: task.Destination, Status: "COMPLETED", FailureReason: task.Failure,
			StartedTimestamp:                 task.Started.UnixMilli(),
			ApproximateNumberOfMessagesMoved: task.Moved, ApproximateNumberOfMessagesToMove: task.ToMove,
		}
		if task.Failure != "" {
			entry.Status = "FAILED"
		}
		out.Results = append(out.Results, entry)
	}
	return out, nil
}
