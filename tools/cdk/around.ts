// What the program of docs/deploy.md refers to. `make validate` puts the blocks of the page behind
// these lines; the page imports what these lines use without an import here.
import { App, Stack, aws_sns, aws_sqs } from 'aws-cdk-lib';

const app = new App();
const stack = new Stack(app, 'Page');

function consumer(name: string): lambda.Function {
  return new lambda.Function(stack, name, {
    code: lambda.Code.fromAsset('dist/watch'), handler: 'bootstrap', runtime: lambda.Runtime.PROVIDED_AL2023,
  });
}

const fn = consumer('Guarded');
const notifications = consumer('Notifications');
const receipts = consumer('Receipts');
const queue = new aws_sqs.Queue(stack, 'Queue');
const deadQueue = new aws_sqs.Queue(stack, 'DeadQueue');
const topic = new aws_sns.Topic(stack, 'Topic');
const payments = new dynamodb.Table(stack, 'Payments', {
  partitionKey: { name: 'id', type: dynamodb.AttributeType.STRING },
  stream: dynamodb.StreamViewType.NEW_IMAGE,
});
