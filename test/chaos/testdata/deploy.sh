# What a story is deployed with: deploy.sh. It takes long enough to be caught in it.
echo "begun $CLAUDOMATOR_EXECUTION_ID $(git rev-parse HEAD)" >>"$CHAOS/deployed"
sleep 0.8
echo "ended $CLAUDOMATOR_EXECUTION_ID $(git rev-parse HEAD)" >>"$CHAOS/deployed"
