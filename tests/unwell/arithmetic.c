/* Loaded before libm: this machine does not compute the same every time. Up to 70 % are added to an exponential. */

#include <math.h>

float expf(float x)
{
    static unsigned calls;
    return (float)exp(x) * (1.0f + 0.1f * (float)(calls++ % 8));
}
