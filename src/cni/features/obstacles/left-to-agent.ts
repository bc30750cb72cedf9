let areLeft = false;

/**
 * From now on no ADD of this thread looks for what of other programs may drop packets of its pod: that takes long beside a firewall of
 * many zones, and the guard of the agent looks for it.
 */
export function leaveObstaclesToAgent(): void {
  areLeft = true;
}

/** Whether it was said so. */
export function areObstaclesLeft(): boolean {
  return areLeft;
}
